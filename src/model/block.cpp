#include "model/block.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernels/rms_norm.h"
#include "kernels/swiglu.h"
#include "model/experts.h"

namespace ropd::model {
namespace {

size_t rows_of(const BlockContext& context) { return context.positions.size(); }

// q and k as attention uses them: per-head norm and rotary applied to the raw projections. In bf16 the keys
// are rounded to the grid the cache stores, so that cached and recomputed attention agree.
void prepare_queries_and_keys(BlockScratch& scratch, Buffer& q_inv_rms, Buffer& k_inv_rms,
                              const BlockTrace& trace, const LayerWeights& weights,
                              const BlockContext& context) {
  const ModelConfig& c = context.config;
  const auto prepare = [&](Buffer& ready, const Buffer& raw, Buffer& inv_rms, std::span<const float> norm,
                           int64_t heads) {
    ready.resize(raw.size());
    if (norm.empty()) {
      std::copy_n(raw.data(), raw.size(), ready.data());
    } else {
      inv_rms.resize(rows_of(context) * static_cast<size_t>(heads));
      kernels::rms_norm(ready, inv_rms, raw.span(), norm, static_cast<float>(c.rms_norm_eps));
    }
    kernels::rope(ready, context.positions, context.rope, heads);
  };
  prepare(scratch.q, trace.q, q_inv_rms, weights.q_norm, c.num_heads);
  prepare(scratch.k, trace.k, k_inv_rms, weights.k_norm, c.num_kv_heads);
  if (context.precision == Precision::bf16) kernels::round_to_bf16(scratch.k);
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

// The gradient through y = x Wᵀ: that of its weight in turn, and into grad_x.
void project_grad(std::span<float> grad_x, kernels::Update update, std::span<float> grad_weight,
                  std::span<const float> grad_y, std::span<const float> x, const Linear& linear,
                  Precision precision, Turn& turn) {
  turn.take([&] {
    kernels::matmul_grad_weight(grad_weight, grad_y, x, linear.outputs(), linear.inputs(), precision);
  });
  linear.apply_gradient(grad_x, grad_y, precision, update);
}

void normalize(Buffer& y, Buffer& inv_rms, std::span<const float> x, std::span<const float> weight,
               const BlockContext& context) {
  y.resize(x.size());
  inv_rms.resize(rows_of(context));
  kernels::rms_norm(y, inv_rms, x, weight, static_cast<float>(context.config.rms_norm_eps));
}

// A place for what each sequence gives to its prefix; empty when nothing is shared.
std::vector<kernels::SharedKeysGrad> place_prefix_gradients(Buffer& memory,
                                                            const AttendedSequences& sequences) {
  size_t size = 0;
  for (const PrefixLayer* prefix : sequences.before) size += prefix ? 2 * prefix->k.size() : 0;
  memory.resize(size);
  float* next = memory.data();
  std::vector<kernels::SharedKeysGrad> places;
  for (const PrefixLayer* prefix : sequences.before) {
    const size_t each = prefix ? prefix->k.size() : 0;
    places.push_back({next, next + each});
    next += 2 * each;
  }
  return places;
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
                          &grad_prefix, &grad_normed, &inv_rms})
    sum += b->bytes();
  return sum;
}

kernels::AttentionShape attention_shape(const ModelConfig& c) {
  return {c.num_heads, c.num_kv_heads, c.head_dim,
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)))};
}

std::vector<kernels::SharedKeys> AttendedSequences::shared_keys() const {
  std::vector<kernels::SharedKeys> shared;
  for (const PrefixLayer* prefix : before)
    shared.push_back(prefix ? kernels::SharedKeys{prefix->k.data(), prefix->v.data(), prefix->length}
                            : kernels::SharedKeys());
  return shared;
}

size_t scratch_bytes_per_token(const ModelConfig& c, bool with_gradient) {
  const int64_t queries = c.num_heads * c.head_dim, keys = c.num_kv_heads * c.head_dim;
  int64_t floats = 2 * c.hidden_size + queries + keys + c.intermediate_size;
  if (with_gradient)
    floats += 2 * std::max(c.intermediate_size, queries) - c.intermediate_size + queries + 2 * keys +
              c.hidden_size + (c.has_qk_norm ? c.num_heads : 1);
  return static_cast<size_t>(floats) * sizeof(float);
}

void trace_block(std::span<float> x, BlockTrace& trace, BlockScratch& scratch, const LayerWeights& weights,
                 const BlockContext& context, const Attend& attend) {
  const ModelConfig& c = context.config;
  const size_t rows = rows_of(context);
  const auto keep = [&](Buffer& residual) {
    if (!context.for_gradient) return;
    residual.resize(x.size());
    std::copy(x.begin(), x.end(), residual.data());
  };
  keep(trace.input);
  normalize(scratch.normed, trace.input_inv_rms, x, weights.input_norm, context);
  project({{trace.q, weights.q, weights.q_bias},
           {trace.k, weights.k, weights.k_bias},
           {trace.v, weights.v, weights.v_bias}},
          scratch.normed, context);
  if (context.precision == Precision::bf16) kernels::round_to_bf16(trace.v);
  prepare_queries_and_keys(scratch, trace.q_inv_rms, trace.k_inv_rms, trace, weights, context);
  trace.attended.resize(trace.q.size());
  trace.log_sum_exp.resize(context.for_gradient ? rows * static_cast<size_t>(c.num_heads) : 0);
  attend(trace.attended, trace.log_sum_exp, scratch.q, scratch.k, trace.v);
  scratch.projected.resize(x.size());
  weights.o.apply(scratch.projected, trace.attended, context.precision);
  kernels::add(x, scratch.projected);

  keep(trace.middle);
  normalize(scratch.normed, trace.middle_inv_rms, x, weights.post_attention_norm, context);
  if (!weights.experts.empty()) return;
  project({{trace.gate, weights.gate}, {trace.up, weights.up}}, scratch.normed, context);
}

void block(std::span<float> x, BlockTrace& trace, BlockScratch& scratch, const LayerWeights& weights,
           const BlockContext& context, const Attend& attend) {
  trace_block(x, trace, scratch, weights, context, attend);
  if (!weights.experts.empty()) {
    mixture_of_experts(x, scratch.normed, weights, context.config, context.precision);
    return;
  }
  scratch.grad_wide.resize(trace.gate.size());
  kernels::swiglu(scratch.grad_wide, trace.gate, trace.up);
  scratch.projected.resize(x.size());
  weights.down.apply(scratch.projected, scratch.grad_wide, context.precision);
  kernels::add(x, scratch.projected);
}

void block_grad(std::span<float> grad_x, const LayerGradients& gradients, const BlockTrace& trace,
                BlockScratch& scratch, const LayerWeights& weights, const BlockContext& context,
                const AttendedSequences& sequences, Turn& turn) {
  using kernels::Update;
  const ModelConfig& c = context.config;
  const Precision precision = context.precision;
  const size_t rows = rows_of(context);
  const size_t wide = rows * static_cast<size_t>(c.intermediate_size);
  const auto through_norm = [&](std::span<float> grad_norm, std::span<const float> x,
                                std::span<const float> inv_rms, std::span<const float> weight) {
    turn.take([&] { kernels::rms_norm_grad(grad_x, grad_norm, scratch.grad_normed, x, inv_rms, weight); });
  };

  // MLP: grad_x is the gradient at x = middle + down(swiglu(gate, up)).
  Buffer& activated = scratch.grad_wide;
  activated.resize(wide);
  kernels::swiglu(activated, trace.gate, trace.up);
  Buffer& grad_up = scratch.grad_wide_2;
  grad_up.resize(wide);
  project_grad(grad_up, Update::replace, gradients.down, grad_x, activated, weights.down, precision, turn);
  Buffer& grad_gate = scratch.grad_wide;
  kernels::swiglu_grad(grad_gate, grad_up, grad_up, trace.gate, trace.up);
  normalize(scratch.normed, scratch.inv_rms, trace.middle, weights.post_attention_norm, context);
  scratch.grad_normed.resize(grad_x.size());
  project_grad(scratch.grad_normed, Update::replace, gradients.gate, grad_gate, scratch.normed, weights.gate,
               precision, turn);
  project_grad(scratch.grad_normed, Update::add, gradients.up, grad_up, scratch.normed, weights.up, precision,
               turn);
  through_norm(gradients.post_attention_norm, trace.middle, trace.middle_inv_rms,
               weights.post_attention_norm);

  // Attention: grad_x is now the gradient at middle = input + o(attended).
  Buffer& grad_attended = scratch.grad_wide;
  grad_attended.resize(trace.attended.size());
  project_grad(grad_attended, Update::replace, gradients.o, grad_x, trace.attended, weights.o, precision,
               turn);
  prepare_queries_and_keys(scratch, scratch.inv_rms, scratch.inv_rms, trace, weights, context);
  scratch.grad_q.resize(trace.q.size());
  scratch.grad_k.resize(trace.k.size());
  scratch.grad_v.resize(trace.v.size());
  const auto grad_shared = place_prefix_gradients(scratch.grad_prefix, sequences);
  kernels::attention_grad(scratch.grad_q, scratch.grad_k, scratch.grad_v, grad_attended, trace.attended,
                          trace.log_sum_exp, scratch.q, scratch.k, trace.v, sequences.begins,
                          attention_shape(c), sequences.shared_keys(), grad_shared);
  turn.take([&] {  // a prefix comes behind its sequences, so all of them have added to its sum
    for (size_t s = 0; s < sequences.before.size(); ++s)
      if (PrefixLayer* const prefix = sequences.before[s]) {
        kernels::add(prefix->grad_k, {grad_shared[s].k, prefix->grad_k.size()});
        kernels::add(prefix->grad_v, {grad_shared[s].v, prefix->grad_v.size()});
      }
    for (size_t s = 0; s < sequences.own.size(); ++s) {
      const PrefixLayer& own = *sequences.own[s];
      const size_t first = static_cast<size_t>(sequences.begins[s] * c.num_kv_heads * c.head_dim);
      kernels::add(scratch.grad_k.span().subspan(first, own.grad_k.size()), own.grad_k);
      kernels::add(scratch.grad_v.span().subspan(first, own.grad_v.size()), own.grad_v);
    }
  });
  const auto through_heads = [&](Buffer& grad, std::span<float> grad_norm, const Buffer& raw,
                                 const Buffer& inv_rms, std::span<const float> norm, int64_t heads) {
    kernels::rope_grad(grad, context.positions, context.rope, heads);
    if (norm.empty()) return;
    turn.take(
        [&] { kernels::rms_norm_grad(grad, grad_norm, grad.span(), raw, inv_rms, norm, Update::replace); });
  };
  through_heads(scratch.grad_q, gradients.q_norm, trace.q, trace.q_inv_rms, weights.q_norm, c.num_heads);
  through_heads(scratch.grad_k, gradients.k_norm, trace.k, trace.k_inv_rms, weights.k_norm, c.num_kv_heads);

  normalize(scratch.normed, scratch.inv_rms, trace.input, weights.input_norm, context);
  scratch.grad_normed.resize(grad_x.size());
  const auto through_projection = [&](const Buffer& grad, Update update, std::span<float> grad_weight,
                                      std::span<float> grad_bias, const Linear& linear) {
    if (!grad_bias.empty()) turn.take([&] { kernels::bias_add_grad(grad_bias, grad.span()); });
    project_grad(scratch.grad_normed, update, grad_weight, grad.span(), scratch.normed, linear, precision,
                 turn);
  };
  through_projection(scratch.grad_q, Update::replace, gradients.q, gradients.q_bias, weights.q);
  through_projection(scratch.grad_k, Update::add, gradients.k, gradients.k_bias, weights.k);
  through_projection(scratch.grad_v, Update::add, gradients.v, gradients.v_bias, weights.v);
  through_norm(gradients.input_norm, trace.input, trace.input_inv_rms, weights.input_norm);
}

}  // namespace ropd::model
