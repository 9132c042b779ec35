// One decoder layer, forward and gradient:
//   x += o · attention(rope(norm(q)), rope(norm(k)), v)      with q, k, v = projections of rms_norm(x)
//   x += down · (silu(gate) * up)                            with gate, up = projections of rms_norm(x)
// The same function serves training, scoring and generation; they differ in where attention finds its keys
// and in whether the trace is kept. A row's result depends on its own sequence alone.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "kernels/attention.h"
#include "kernels/rope.h"
#include "model/weights.h"
#include "tensor/buffer.h"

namespace ropd::model {

// What a layer computed, as far as its gradient needs it. What is cheap to redo elementwise (norms, rotary,
// SwiGLU) is not here.
struct BlockTrace {
  Buffer input;          // [T, D]
  Buffer input_inv_rms;  // [T]
  Buffer q, k,
      v;  // [T, H*E], [T, K*E] x 2: after the projections and biases, before per-head norm and rotary
  Buffer q_inv_rms, k_inv_rms;  // [T*H], [T*K]
  Buffer attended;              // [T, H*E]
  Buffer log_sum_exp;           // [T, H]
  Buffer middle;                // [T, D]: the residual stream between attention and MLP
  Buffer middle_inv_rms;        // [T]
  Buffer gate, up;              // [T, F]
  size_t bytes() const;
};

// Bytes of a trace for one token.
size_t trace_bytes_per_token(const ModelConfig& config);

// Memory between the steps of a layer; contents mean nothing outside of a call.
struct BlockScratch {
  Buffer normed;                  // [T, D]
  Buffer q, k;                    // [T, H*E], [T, K*E]: ready for attention
  Buffer projected;               // [T, max(D, F)]
  Buffer grad_wide, grad_wide_2;  // [T, F] or [T, H*E]
  Buffer grad_q, grad_k, grad_v;
  Buffer grad_normed;  // [T, D]
  Buffer inv_rms;      // of norms that the gradient redoes
  Buffer low_rank;     // of adapters: kernels/low_rank.h
  size_t bytes() const;
};

// Bytes of the scratch for one token, for block() alone or for block_grad() too. Dense layers.
size_t scratch_bytes_per_token(const ModelConfig& config, bool with_gradient);

// Computes attention's output for the rows of this layer: out [T, H*E], log_sum_exp [T, H] (may be
// empty, may be ignored).
using Attend =
    std::function<void(std::span<float> out, std::span<float> log_sum_exp, std::span<const float> q,
                       std::span<const float> k, std::span<const float> v)>;

// Everything a layer needs besides its input.
struct BlockContext {
  const ModelConfig& config;
  const kernels::RopeTable& rope;
  std::span<const int32_t> positions;  // [T]
  Precision precision;
  bool for_gradient = true;  // the trace keeps residuals and log_sum_exp, which nothing else needs
};

// What block_grad needs, in `trace`; of block() everything but the last step, so x [T, D] is replaced by the
// residual stream between attention and MLP.
void trace_block(std::span<float> x, BlockTrace& trace, BlockScratch& scratch, const LayerWeights& weights,
                 const BlockContext& context, const Attend& attend);

// x [T, D] is replaced by the layer's output. `trace` receives what block_grad needs.
void block(std::span<float> x, BlockTrace& trace, BlockScratch& scratch, const LayerWeights& weights,
           const BlockContext& context, const Attend& attend);

// Where the gradient of a matrix goes: that of the whole matrix, or those of its low-rank change; what is empty
// is frozen and not computed.
struct MatrixGradient {
  std::span<float> whole;  // [outputs, inputs]
  std::span<float> a, b;   // [r, inputs], [outputs, r]
};

// Gradients of one layer's parameters, as views into flat storage; empty where the architecture has no such
// part, or where it is frozen.
struct LayerGradients {
  MatrixGradient q, k, v, o, gate, up, down;
  std::span<float> input_norm, q_bias, k_bias, v_bias, q_norm, k_norm, post_attention_norm;
};

kernels::AttentionShape attention_shape(const ModelConfig& config);

// grad_x [T, D] holds the gradient at the layer's output and is replaced by the gradient at its input; adds
// to `gradients`. Each sequence [begin, next begin) attends to itself. Dense layers only.
void block_grad(std::span<float> grad_x, const LayerGradients& gradients, const BlockTrace& trace,
                BlockScratch& scratch, const LayerWeights& weights, const BlockContext& context,
                std::span<const int64_t> sequence_begins);  // [B + 1]

}  // namespace ropd::model
