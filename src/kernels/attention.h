// Causal attention with grouped kv heads and online softmax; never a [T, T] array.
//   out[t, h] = sum_j softmax_j(scale * q[t, h] . k[j, h / (H/K)]) v[j, h / (H/K)],   j <= t within the
//   sequence
// Two forms, one arithmetic: packed sequences (training, scoring) and a paged cache (generation). Both walk
// blocks of 32 keys counted from position 0 of the sequence through the same tile function, so a row has the
// same bits in both, whatever the batch, the chunks of a prompt, the page size or the number of threads.
#pragma once
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace ropd::kernels {

struct AttentionShape {
  int64_t num_heads = 0;     // H, a multiple of K
  int64_t num_kv_heads = 0;  // K
  int64_t head_dim = 0;      // E
  float scale = 1;           // usually 1 / sqrt(E)
};

// What comes before the rows of a sequence: the first positions, which it shares with others and which lie
// elsewhere. Rows are K*E floats apart.
struct SharedKeys {
  const float *k = nullptr, *v = nullptr;  // [length, K*E]
  int64_t length = 0;
};

// Packed form. Sequence b is the rows [sequence_begins[b], sequence_begins[b + 1]), behind shared[b] if there
// are any. Writes out and log_sum_exp.
void attention(
    std::span<float> out,          // [T, H*E]
    std::span<float> log_sum_exp,  // [T, H] of the scaled scores; the gradient needs it; may be empty
    std::span<const float> q,      // [T, H*E]
    std::span<const float> k,      // [T, K*E]
    std::span<const float> v,      // [T, K*E]
    std::span<const int64_t> sequence_begins,                               // [B + 1]
    const AttentionShape& shape, std::span<const SharedKeys> shared = {});  // [B] or empty

// Writes grad_q [T, H*E], grad_k and grad_v [T, K*E]; of sequences that share nothing.
void attention_grad(std::span<float> grad_q, std::span<float> grad_k, std::span<float> grad_v,
                    std::span<const float> grad_out,     // [T, H*E]
                    std::span<const float> out,          // [T, H*E]
                    std::span<const float> log_sum_exp,  // [T, H]
                    std::span<const float> q, std::span<const float> k, std::span<const float> v,
                    std::span<const int64_t> sequence_begins, const AttentionShape& shape);

// The cache of one layer: pages of `page_tokens` positions. A page holds, for each kv head and each block of
// 32 positions, K transposed [E, 32] and then V [32, E], so that attention reads one stream. Not owned. The
// memory must be zero before its first use (stale finite values are harmless, NaN is not).
struct KvPageView {
  void* data = nullptr;      // [num_pages, K, 2 * E * page_tokens] of dtype
  DType dtype = DType::f32;  // f32, or bf16 for values that lie on the bf16 grid
  int64_t num_pages = 0;
  int64_t page_tokens = 0;   // a multiple of 32
  int64_t num_kv_heads = 0;  // K
  int64_t head_dim = 0;      // E
  int64_t page_elements() const { return num_kv_heads * 2 * head_dim * page_tokens; }
  int64_t page_bytes() const { return page_elements() * static_cast<int64_t>(dtype_bytes(dtype)); }
};

// Consecutive rows of a batch that belong to one sequence, at positions first_position, first_position + 1,
// ...
struct PagedRows {
  const int32_t* pages =
      nullptr;  // page p of the table holds the positions [p * page_tokens, (p + 1) * page_tokens)
  int64_t first_position = 0;
  int64_t num_rows = 0;
};

// Stores k and v [R, K*E] at the positions of their rows (bf16 pages round to nearest), R = sum of num_rows; then
// out [R, H*E] for q [R, H*E]: the row at position p attends to the cached positions 0..p. Those before the rows
// must have been written. No two groups may write the same page position, and none may read what another one
// writes here.
void paged_attention(std::span<float> out, const KvPageView& cache, std::span<const float> q,
                     std::span<const float> k, std::span<const float> v, std::span<const PagedRows> groups,
                     const AttentionShape& shape);

}  // namespace ropd::kernels
