// A batch in parts that fit the cache, computed one at a time or by threads of their own. Prefixes that
// sequences share are in parts that are computed first; their keys and values are all that the sequences
// behind them need.
#pragma once
#include <cstdint>
#include <vector>

#include "model/batch.h"
#include "model/block.h"

namespace ropd::model {

struct SharedPrefix {
  std::vector<PrefixLayer> layers;
};

struct BatchPart {
  PackedBatch batch;
  int64_t first_row = 0;              // in the whole batch
  std::vector<SharedPrefix*> before;  // [B] nullptr = nothing; or empty
  std::vector<SharedPrefix*> own;     // [B] of a part of prefixes: these; or empty
  bool is_prefixes() const { return !own.empty(); }
  AttendedSequences sequences_in(size_t layer) const;
};

// `prefixes` is grown as needed and must outlive the parts.
std::vector<BatchPart> cut_into_parts(const PackedBatch& batch, int64_t count,
                                      std::vector<SharedPrefix>& prefixes);

// Attention in one layer of a part, which must live as long.
Attend part_attention(const BatchPart& part, size_t layer, const ModelConfig& config);

// The same for a part of prefixes: keeps their keys and values for the sequences behind them and clears the
// gradients that those will add to.
Attend sharing_attention(const BatchPart& part, size_t layer, const ModelConfig& config);

}  // namespace ropd::model
