// A low-rank change of a weight matrix: W' = W + scale · (B A) with A [r, K], B [N, r].
// Whoever computes with W' computes with it as one matrix, made here: an element of B A is one chain over r,
//   c = fma(b[n, 0], a[0, k], 0); c = fma(b[n, 1], a[1, k], c); ...
// then times scale, then added to the stored weight, each in f32. So W' is the same in every path. Gradients at
// A and B go through the low rank and never form the gradient at W'.
#pragma once
#include <span>

#include "kernels/matmul.h"
#include "tensor/buffer.h"

namespace ropd::kernels {

// Not owned. Rank 0: there is none.
struct LowRank {
  const float* a = nullptr;  // [r, K]
  const float* b = nullptr;  // [N, r]
  int64_t rank = 0;
  float scale = 0;
};

// Writes merged [N, K] = W + scale · (B A); in bf16 rounded as products in that precision round it.
void merge_low_rank(std::span<float> merged, const WeightView& stored, const LowRank& change);
void merge_low_rank(std::span<Bf16> merged, const WeightView& stored, const LowRank& change);

// Through y = x W'ᵀ, at A and B alone:
//   adds grad_yᵀ · (scale · (x Aᵀ)) to grad_b [N, r] and (scale · (grad_y B))ᵀ · x to grad_a [r, K].
// x [T, K], grad_y [T, N]. All four products are chains as in matmul.h, of rounded factors with bf16_tiles as with
// bf16: they are too thin for matrix units, and those that are added are then chains over tokens, so parts of a
// batch do not show. `scratch` grows to some [N + K, r], and [256, N + K] in bf16.
void low_rank_grad(std::span<float> grad_a, std::span<float> grad_b, Buffer& scratch,
                   std::span<const float> grad_y, std::span<const float> x, const LowRank& change,
                   Precision precision);

}  // namespace ropd::kernels
