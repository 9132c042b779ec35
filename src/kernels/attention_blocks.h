// What the forward and the gradient of attention share: blocks of 32 keys and how they lie in memory.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/attention.h"

namespace ropd::kernels {

inline constexpr int64_t kKeyBlock = 32;
inline constexpr int64_t kProductsEach =
    4;  // in an elementary operation (parallel_chunks), as attention does them

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

// The same for the tokens from `position` on, ending where a whole chunk of the sequence ends: a chunk then
// crosses no more key blocks than it must.
constexpr int64_t chunk_at(int64_t position, int64_t end, int64_t tokens_at_once) {
  return std::min(tokens_at_once - position % tokens_at_once, end - position);
}

// The rows of a chunk that see something of a key block: [first, middle) no more than its first half,
// [middle, end) more.
struct RowsOfBlock {
  int64_t first, middle, end;
  // A row is a query token, from position first_token on, in one of `group` heads.
  constexpr RowsOfBlock(int64_t block_begin, int64_t first_token, int64_t rows, int64_t group) : end(rows) {
    const auto row_at = [&](int64_t position) {
      return std::min(rows, std::max<int64_t>(0, position - first_token) * group);
    };
    first = row_at(block_begin);
    middle = row_at(block_begin + kKeyBlock / 2);
  }
  int64_t count() const { return end - first; }
  // Calls part(row, count, keys) for both kinds of rows, as far as there are any.
  template <class Part>
  void for_halves(const Part& part) const {
    if (first < middle) part(first, middle - first, kKeyBlock / 2);
    if (middle < end) part(middle, end - middle, kKeyBlock);
  }
};

// to [E][32], columns first..first + keys = from [keys][E] transposed.
void transpose_keys(float* to, const float* from, int64_t from_stride, int64_t first, int64_t keys,
                    int64_t head_dim);

// The rows of one kv head of one sequence by position, wherever they lie.
template <class Float>
struct SplitRows {
  Float *shared, *own;
  int64_t num_shared, stride;
  // Of all rows of a sequence, those of kv head `head`.
  SplitRows(Float* shared_rows, Float* own_rows, int64_t shared_count, const AttentionShape& shape,
            int64_t head)
      : shared(shared_rows ? shared_rows + head * shape.head_dim : nullptr),
        own(own_rows + head * shape.head_dim),
        num_shared(shared_count),
        stride(shape.num_kv_heads * shape.head_dim) {}
  Float* row(int64_t position) const {
    return position < num_shared ? shared + position * stride : own + (position - num_shared) * stride;
  }
  // Calls part(first, count) for the positions [begin, end), split where the shared rows end.
  template <class Part>
  void for_parts(int64_t begin, int64_t end, const Part& part) const {
    const int64_t middle = std::clamp(num_shared, begin, end);
    if (begin < middle) part(begin, middle - begin);
    if (middle < end) part(middle, end - middle);
  }
};

}  // namespace ropd::kernels
