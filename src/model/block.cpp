#include "model/block.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/parallel.h"
#include "kernels/rms_norm.h"
#include "kernels/swiglu.h"
#include "model/experts.h"

namespace ropd::model {
namespace {

size_t rows_of(const BlockContext& context) { return context.positions.size(); }

// q and k as attention uses them: per-head norm and rotary applied to the raw projections. In bf16 keys, and
// values where they are not empty, are rounded to the grid the cache stores, so that cached and recomputed
// attention agree. Rows are shared out once for all of it: in decoding each step alone is too short for that.
void prepare_heads(BlockScratch& scratch, std::span<float> q_inv_rms, std::span<float> k_inv_rms,
                   std::span<float> v, const BlockTrace& trace, const LayerWeights& weights,
                   const BlockContext& context) {
  const ModelConfig& c = context.config;
  scratch.q.resize(trace.q.size());
  scratch.k.resize(trace.k.size());
  const int64_t rows = static_cast<int64_t>(rows_of(context)),
                width = (c.num_heads + c.num_kv_heads) * c.head_dim;
  constexpr int64_t kChunk = 4096, kWorkEach = 3;
  parallel_chunks(
      rows, std::max<int64_t>(1, kChunk / width), kWorkEach * rows * width, [&](int64_t begin, int64_t end) {
        const auto of_rows = [&](auto all, int64_t row_size) {
          return all.subspan(static_cast<size_t>(begin * row_size),
                             static_cast<size_t>((end - begin) * row_size));
        };
        const auto prepare = [&](std::span<float> ready, std::span<const float> raw, std::span<float> inv_rms,
                                 std::span<const float> norm, int64_t heads) {
          ready = of_rows(ready, heads * c.head_dim);
          raw = of_rows(raw, heads * c.head_dim);
          if (norm.empty())
            std::copy(raw.begin(), raw.end(), ready.begin());
          else
            kernels::rms_norm(ready, of_rows(inv_rms, heads), raw, norm, static_cast<float>(c.rms_norm_eps));
          kernels::rope(ready, of_rows(context.positions, 1), context.rope, heads);
        };
        prepare(scratch.q, trace.q, q_inv_rms, weights.q_norm, c.num_heads);
        prepare(scratch.k, trace.k, k_inv_rms, weights.k_norm, c.num_kv_heads);
        if (!is_bf16(context.precision)) return;
        kernels::round_to_bf16(of_rows(scratch.k.span(), c.num_kv_heads * c.head_dim));
        if (!v.empty()) kernels::round_to_bf16(of_rows(v, c.num_kv_heads * c.head_dim));
      });
}

struct Projection {
  Buffer& y;
  const Linear& linear;
  std::span<const float> bias = {};
};

void project(std::initializer_list<Projection> projections, std::span<const float> x,
             const BlockContext& context) {
  std::vector<LinearOutput> outputs;
  for (const Projection& p : projections) {
    p.y.resize(rows_of(context) * static_cast<size_t>(p.linear.outputs()));
    outputs.push_back({p.y, &p.linear});
  }
  apply_all(outputs, x, context.precision);
  for (const Projection& p : projections)
    if (!p.bias.empty()) kernels::bias_add(p.y, p.bias);
}

// x += y Wᵀ
void add_projection(std::span<float> x, BlockScratch& scratch, std::span<const float> y, const Linear& linear,
                    const BlockContext& context) {
  scratch.projected.resize(x.size());
  linear.apply(scratch.projected, y, context.precision);
  kernels::add(x, scratch.projected);
}

// Through y = x Wᵀ: adds to the gradient of the matrix; grad_y · W into grad_x.
void project_grad(std::span<float> grad_x, kernels::Update update, const MatrixGradient& gradient,
                  BlockScratch& scratch, std::span<const float> grad_y, std::span<const float> x,
                  const Linear& linear, Precision precision, std::span<const int64_t> sequence_begins) {
  if (!gradient.whole.empty())
    kernels::matmul_grad_weight(gradient.whole, grad_y, x, linear.outputs(), linear.inputs(), precision,
                                sequence_begins);
  if (!gradient.a.empty())
    kernels::low_rank_grad(gradient.a, gradient.b, scratch.low_rank, grad_y, x, linear.change, precision);
  linear.apply_gradient(grad_x, grad_y, precision, update);
}

void normalize(Buffer& y, Buffer& inv_rms, std::span<const float> x, std::span<const float> weight,
               const BlockContext& context) {
  y.resize(x.size());
  inv_rms.resize(rows_of(context));
  kernels::rms_norm(y, inv_rms, x, weight, static_cast<float>(context.config.rms_norm_eps));
}

// Through middle + down · swiglu(gate, up), with gate and up projected from normed = rms_norm(middle).
void mlp_grad(std::span<float> grad_x, const LayerGradients& gradients, const BlockTrace& trace,
              BlockScratch& scratch, const LayerWeights& weights, const BlockContext& context,
              std::span<const int64_t> sequence_begins) {
  using kernels::Update;
  const Precision precision = context.precision;
  Buffer &activated = scratch.grad_wide, &grad_up = scratch.grad_wide_2;
  activated.resize(trace.gate.size());
  grad_up.resize(trace.gate.size());
  kernels::swiglu(activated, trace.gate, trace.up);
  project_grad(grad_up, Update::replace, gradients.down, scratch, grad_x, activated, weights.down, precision,
               sequence_begins);
  Buffer& grad_gate = scratch.grad_wide;  // `activated` is no longer needed
  kernels::swiglu_grad(grad_gate, grad_up, grad_up, trace.gate, trace.up);

  normalize(scratch.normed, scratch.inv_rms, trace.middle, weights.post_attention_norm, context);
  Buffer& grad_normed = scratch.grad_normed;
  grad_normed.resize(grad_x.size());
  project_grad(grad_normed, Update::replace, gradients.gate, scratch, grad_gate, scratch.normed, weights.gate,
               precision, sequence_begins);
  project_grad(grad_normed, Update::add, gradients.up, scratch, grad_up, scratch.normed, weights.up,
               precision, sequence_begins);
  kernels::rms_norm_grad(grad_x, gradients.post_attention_norm, grad_normed, trace.middle,
                         trace.middle_inv_rms, weights.post_attention_norm);
}

// Through rope(norm(raw)), the norm per head and only where the architecture has one. In place.
void heads_grad(Buffer& grad, std::span<float> grad_norm, const Buffer& raw, const Buffer& inv_rms,
                std::span<const float> norm, int64_t heads, const BlockContext& context) {
  kernels::rope_grad(grad, context.positions, context.rope, heads);
  if (!norm.empty())
    kernels::rms_norm_grad(grad, grad_norm, grad.span(), raw, inv_rms, norm, kernels::Update::replace);
}

// Through input + o · attention(q, k, v), with q, k and v projected from normed = rms_norm(input).
void attention_part_grad(std::span<float> grad_x, const LayerGradients& gradients, const BlockTrace& trace,
                         BlockScratch& scratch, const LayerWeights& weights, const BlockContext& context,
                         std::span<const int64_t> sequence_begins) {
  using kernels::Update;
  const ModelConfig& c = context.config;
  Buffer& grad_attended = scratch.grad_wide;
  grad_attended.resize(trace.attended.size());
  project_grad(grad_attended, Update::replace, gradients.o, scratch, grad_x, trace.attended, weights.o,
               context.precision, sequence_begins);
  scratch.inv_rms.resize(trace.q_inv_rms.size() + trace.k_inv_rms.size());
  prepare_heads(scratch, scratch.inv_rms.span().first(trace.q_inv_rms.size()),
                scratch.inv_rms.span().last(trace.k_inv_rms.size()), /*v=*/{}, trace, weights, context);
  Buffer &grad_q = scratch.grad_q, &grad_k = scratch.grad_k, &grad_v = scratch.grad_v;
  grad_q.resize(trace.q.size());
  grad_k.resize(trace.k.size());
  grad_v.resize(trace.v.size());
  kernels::attention_grad(grad_q, grad_k, grad_v, grad_attended, trace.attended, trace.log_sum_exp, scratch.q,
                          scratch.k, trace.v, sequence_begins, attention_shape(c));
  heads_grad(grad_q, gradients.q_norm, trace.q, trace.q_inv_rms, weights.q_norm, c.num_heads, context);
  heads_grad(grad_k, gradients.k_norm, trace.k, trace.k_inv_rms, weights.k_norm, c.num_kv_heads, context);

  normalize(scratch.normed, scratch.inv_rms, trace.input, weights.input_norm, context);
  Buffer& grad_normed = scratch.grad_normed;
  grad_normed.resize(grad_x.size());
  const auto project_back = [&](Update update, const MatrixGradient& gradient, std::span<float> grad_bias,
                                const Buffer& grad, const Linear& linear) {
    if (!grad_bias.empty()) kernels::bias_add_grad(grad_bias, grad.span());
    project_grad(grad_normed, update, gradient, scratch, grad, scratch.normed, linear, context.precision,
                 sequence_begins);
  };
  project_back(Update::replace, gradients.q, gradients.q_bias, grad_q, weights.q);
  project_back(Update::add, gradients.k, gradients.k_bias, grad_k, weights.k);
  project_back(Update::add, gradients.v, gradients.v_bias, grad_v, weights.v);
  kernels::rms_norm_grad(grad_x, gradients.input_norm, grad_normed, trace.input, trace.input_inv_rms,
                         weights.input_norm);
}

}  // namespace

size_t BlockTrace::bytes() const {
  size_t sum = 0;
  for (const Buffer* b : {&input, &input_inv_rms, &q, &k, &v, &q_inv_rms, &k_inv_rms, &attended, &log_sum_exp,
                          &middle, &middle_inv_rms, &gate, &up})
    sum += b->bytes();
  return sum;
}

size_t trace_bytes_per_token(const ModelConfig& c) {
  const int64_t floats = 2 * c.hidden_size + 2 * c.num_heads * c.head_dim + 2 * c.num_kv_heads * c.head_dim +
                         2 * c.num_heads + c.num_kv_heads + 2 + 2 * c.intermediate_size;
  return static_cast<size_t>(floats) * sizeof(float);
}

size_t BlockScratch::bytes() const {
  size_t sum = 0;
  for (const Buffer* b : {&normed, &q, &k, &projected, &grad_wide, &grad_wide_2, &grad_q, &grad_k, &grad_v,
                          &grad_normed, &inv_rms, &low_rank})
    sum += b->bytes();
  return sum;
}

kernels::AttentionShape attention_shape(const ModelConfig& c) {
  return {c.num_heads, c.num_kv_heads, c.head_dim,
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)))};
}

size_t scratch_bytes_per_token(const ModelConfig& c, bool with_gradient) {
  const int64_t queries = c.num_heads * c.head_dim, keys = c.num_kv_heads * c.head_dim;
  int64_t floats = 2 * c.hidden_size + queries + keys + c.intermediate_size;
  if (with_gradient)
    floats += 2 * std::max(c.intermediate_size, queries) - c.intermediate_size + queries + 2 * keys +
              c.hidden_size + (c.has_qk_norm ? c.num_heads + c.num_kv_heads : 1);
  return static_cast<size_t>(floats) * sizeof(float);
}

void trace_block(std::span<float> x, BlockTrace& trace, BlockScratch& scratch, const LayerWeights& weights,
                 const BlockContext& context, const Attend& attend) {
  const auto keep = [&](Buffer& residual) {
    if (!context.for_gradient) return;
    residual.resize(x.size());
    std::copy(x.begin(), x.end(), residual.data());
  };
  // x += o · attention(rope(norm(q)), rope(norm(k)), v)
  keep(trace.input);
  normalize(scratch.normed, trace.input_inv_rms, x, weights.input_norm, context);
  project({{trace.q, weights.q, weights.q_bias},
           {trace.k, weights.k, weights.k_bias},
           {trace.v, weights.v, weights.v_bias}},
          scratch.normed, context);
  if (context.config.has_qk_norm) {
    trace.q_inv_rms.resize(rows_of(context) * static_cast<size_t>(context.config.num_heads));
    trace.k_inv_rms.resize(rows_of(context) * static_cast<size_t>(context.config.num_kv_heads));
  }
  prepare_heads(scratch, trace.q_inv_rms, trace.k_inv_rms, trace.v, trace, weights, context);
  trace.attended.resize(trace.q.size());
  trace.log_sum_exp.resize(
      context.for_gradient ? rows_of(context) * static_cast<size_t>(context.config.num_heads) : 0);
  attend(trace.attended, trace.log_sum_exp, scratch.q, scratch.k, trace.v);
  add_projection(x, scratch, trace.attended, weights.o, context);

  // gate and up of rms_norm(x)
  keep(trace.middle);
  normalize(scratch.normed, trace.middle_inv_rms, x, weights.post_attention_norm, context);
  if (weights.experts.empty())
    project({{trace.gate, weights.gate}, {trace.up, weights.up}}, scratch.normed, context);
}

void block(std::span<float> x, BlockTrace& trace, BlockScratch& scratch, const LayerWeights& weights,
           const BlockContext& context, const Attend& attend) {
  trace_block(x, trace, scratch, weights, context, attend);
  if (!weights.experts.empty()) {
    mixture_of_experts(x, scratch.normed, weights, context.config, context.precision);
    return;
  }
  // x += down · (silu(gate) * up)
  scratch.grad_wide.resize(trace.gate.size());
  kernels::swiglu(scratch.grad_wide, trace.gate, trace.up);
  add_projection(x, scratch, scratch.grad_wide, weights.down, context);
}

void block_grad(std::span<float> grad_x, const LayerGradients& gradients, const BlockTrace& trace,
                BlockScratch& scratch, const LayerWeights& weights, const BlockContext& context,
                std::span<const int64_t> sequence_begins) {
  mlp_grad(grad_x, gradients, trace, scratch, weights, context, sequence_begins);
  attention_part_grad(grad_x, gradients, trace, scratch, weights, context, sequence_begins);
}

}  // namespace ropd::model
