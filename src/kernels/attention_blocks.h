// What the forward and the gradient of attention share: blocks of 32 keys and how they lie in memory.
#pragma once
#include <cstdint>

#include "kernels/attention.h"

namespace ropd::kernels {

inline constexpr int64_t kKeyBlock = 32;

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Floats between the rows of a block with head_dim columns: whole cache lines, and no multiple of four of
// them. The rows of one column would then lie in a few sets of the cache and drive each other out.
constexpr int64_t row_distance(int64_t head_dim) {
  const int64_t lines = (head_dim + 15) / 16;
  return 16 * (lines % 4 == 0 ? lines + 1 : lines);
}

// Query tokens that one unit of work takes through all their key blocks together; their heads of one kv head
// make about 64 rows, enough to use every key block many times while it is in the first-level cache.
constexpr int64_t chunk_tokens(const AttentionShape& shape) {
  const int64_t group = shape.num_heads / shape.num_kv_heads;
  return group >= 64 ? 1 : 64 / group;
}

// to [E][32] = from [32][E] transposed; only `keys` rows exist, the others become 0.
void transpose_keys(float* to, const float* from, int64_t from_stride, int64_t keys, int64_t head_dim);

}  // namespace ropd::kernels
