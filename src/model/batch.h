// Sequences packed one behind the other, without padding.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "records/rollout.h"

namespace ropd::model {

struct PackedBatch {
  std::vector<Token> tokens;                   // [T]
  std::vector<int32_t> positions;              // [T] within the sequence
  std::vector<int64_t> sequence_begins = {0};  // [B + 1]
  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_sequences() const { return static_cast<int64_t>(sequence_begins.size()) - 1; }
  // Appends a sequence made of two parts (prompt and response).
  void append(std::span<const Token> first, std::span<const Token> second = {});
  // The sequences [first, last) as a batch of their own.
  PackedBatch part(int64_t first, int64_t last) const;
};

// Where to cut a batch into about `parts` runs of sequences with about equally many tokens: indices of
// sequences, no part empty. Of more than four parts the last four are halved, so that threads that take them
// in order are done at nearly the same time.
std::vector<int64_t> cut_evenly(const PackedBatch& batch, int64_t parts);

}  // namespace ropd::model
