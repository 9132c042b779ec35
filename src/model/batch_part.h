// A batch in parts that fit the cache, computed one at a time. Prefixes that sequences share are in parts
// that are computed first; their keys and values are all that the sequences behind them need.
#pragma once
#include <cstdint>
#include <vector>

#include "model/batch.h"
#include "model/block.h"

namespace ropd::model {

// A prefix that several sequences share: in every layer what their attention needs of it.
struct PrefixLayer {
  Buffer k, v;         // [P, K*E], as attention takes them
  int64_t length = 0;  // P
};
struct SharedPrefix {
  std::vector<PrefixLayer> layers;
};

struct BatchPart {
  PackedBatch batch;
  int64_t first_row = 0;              // in the whole batch
  std::vector<SharedPrefix*> before;  // [B] nullptr = nothing; or empty
  std::vector<SharedPrefix*> own;     // [B] of a part of prefixes: these; or empty
  bool is_prefixes() const { return !own.empty(); }
};

// Runs of sequences of at most `tokens` tokens (one at least), no part with both prefixes and other
// sequences. `prefixes` is grown as needed and must outlive the parts.
std::vector<BatchPart> cut_into_parts(const PackedBatch& batch, int64_t tokens,
                                      std::vector<SharedPrefix>& prefixes);

// Attention within a batch that holds the prefixes of its sequences, in any layer. It must live as long.
Attend packed_attention(const PackedBatch& batch, const ModelConfig& config);

// Attention in one layer of a part, which must live as long.
Attend part_attention(const BatchPart& part, size_t layer, const ModelConfig& config);

// The same for a part of prefixes: keeps their keys and values for the sequences behind them.
Attend sharing_attention(const BatchPart& part, size_t layer, const ModelConfig& config);

}  // namespace ropd::model
