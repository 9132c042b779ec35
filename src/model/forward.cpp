#include "model/forward.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "kernels/attention.h"
#include "kernels/embedding.h"
#include "kernels/rms_norm.h"

namespace ropd::model {
namespace {

Attend packed_attention(const PackedBatch& batch, const ModelConfig& c) {
  const kernels::AttentionShape shape{c.num_heads, c.num_kv_heads, c.head_dim,
                                      static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)))};
  return [&batch, shape](std::span<float> out, std::span<float> log_sum_exp, std::span<const float> q,
                         std::span<const float> k, std::span<const float> v) {
    kernels::attention(out, log_sum_exp, q, k, v, batch.sequence_begins, shape);
  };
}

int64_t longest(const PackedBatch& batch) {
  int64_t length = 0;
  for (size_t i = 1; i < batch.sequence_begins.size(); ++i)
    length = std::max(length, batch.sequence_begins[i] - batch.sequence_begins[i - 1]);
  return length;
}

}  // namespace

const kernels::RopeTable& Workspace::rope_for(const ModelConfig& config, int64_t num_positions) {
  if (num_positions > rope.num_positions) {
    // Some room to grow, so that sequences that get longer one by one do not rebuild the table each time.
    const int64_t wanted =
        std::max(num_positions, std::min(2 * num_positions, config.max_position_embeddings));
    rope = kernels::make_rope_table(wanted,
                                    kernels::rope_inverse_frequencies(config.head_dim, config.rope_theta));
  }
  return rope;
}

void Workspace::provide_lanes(size_t count) {
  while (lanes.size() < count) lanes.push_back(std::make_unique<Workspace>());
}

int64_t num_tasks(const ModelConfig& config, int64_t tokens) {
  constexpr int64_t kWorthThreads = int64_t{1} << 22;  // products of weights and activations
  if (!stays_in_cache(config) || tokens * parameter_count(config) < kWorthThreads) return 1;
  const int64_t tasks = (tokens + kTokensPerTask - 1) / kTokensPerTask,
                threads = static_cast<int64_t>(kernels::num_lanes());
  return (tasks + threads - 1) / threads * threads;
}

void check_batch(const PackedBatch& batch, const ModelConfig& config) {
  for (int64_t s = 0; s < batch.num_sequences(); ++s) {
    const int64_t begin = batch.sequence_begins[s], end = batch.sequence_begins[s + 1];
    if (end - begin > config.max_position_embeddings)
      fail("sequence ", s, ": ", end - begin,
           " tokens, the model has max_position_embeddings = ", config.max_position_embeddings);
    for (int64_t t = begin; t < end; ++t)
      if (batch.tokens[t] < 0 || batch.tokens[t] >= config.vocab_size)
        fail("sequence ", s, ", position ", t - begin, ": id ", batch.tokens[t],
             " is outside the vocabulary of ", config.vocab_size, " (tokens of another model?)");
  }
}

void forward(std::span<float> hidden, const Weights& weights, const PackedBatch& batch, Precision precision,
             Workspace& workspace) {
  const ModelConfig& c = weights.config;
  check_batch(batch, c);
  Buffer& x = workspace.x;
  x.resize(batch.tokens.size() * static_cast<size_t>(c.hidden_size));
  kernels::embedding(x, batch.tokens, weights.embedding.stored);
  const BlockContext context{c, workspace.rope_for(c, longest(batch)), batch.positions, precision};
  const Attend attend = packed_attention(batch, c);
  for (const LayerWeights& layer : weights.layers)
    block(x, workspace.trace, workspace.scratch, layer, context, attend);
  workspace.trace.input_inv_rms.resize(batch.tokens.size());
  kernels::rms_norm(hidden, workspace.trace.input_inv_rms, x, weights.final_norm,
                    static_cast<float>(c.rms_norm_eps));
}

Gradients::Gradients(const Parameters& parameters) : values_(parameters.values().size()) {
  clear();
  const ModelConfig& c = parameters.config();
  assert(!c.is_moe() && "mixture-of-experts models are teachers only");
  std::unordered_map<std::string, std::span<float>> by_name;
  for (const ParameterSlot& slot : parameters.slots())
    by_name[slot.name] =
        values_.span().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
  embedding_ = by_name.at("model.embed_tokens.weight");
  final_norm_ = by_name.at("model.norm.weight");
  head_ = c.tie_word_embeddings ? embedding_ : by_name.at("lm_head.weight");
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const auto of = [&](const char* name) {
      return by_name[layer + name];
    };  // empty when the architecture has none
    layers_.push_back({.input_norm = of("input_layernorm.weight"),
                       .q = of("self_attn.q_proj.weight"),
                       .k = of("self_attn.k_proj.weight"),
                       .v = of("self_attn.v_proj.weight"),
                       .o = of("self_attn.o_proj.weight"),
                       .q_bias = of("self_attn.q_proj.bias"),
                       .k_bias = of("self_attn.k_proj.bias"),
                       .v_bias = of("self_attn.v_proj.bias"),
                       .q_norm = of("self_attn.q_norm.weight"),
                       .k_norm = of("self_attn.k_norm.weight"),
                       .post_attention_norm = of("post_attention_layernorm.weight"),
                       .gate = of("mlp.gate_proj.weight"),
                       .up = of("mlp.up_proj.weight"),
                       .down = of("mlp.down_proj.weight")});
  }
}

TrainingPass::TrainingPass(const Weights& weights, Precision precision, size_t trace_budget_bytes)
    : weights_(weights), precision_(precision), trace_budget_bytes_(trace_budget_bytes) {}

BlockContext TrainingPass::context(Lane& lane, const PackedBatch& batch) const {
  return {weights_.config, lane.workspace.rope_for(weights_.config, longest(batch)), batch.positions,
          precision_};
}

void TrainingPass::accumulate(Gradients& gradients, const PackedBatch& batch, std::span<const int64_t> rows,
                              const HeadStep& head) {
  check_batch(batch, weights_.config);
  const std::vector<int64_t> cuts = cut_evenly(batch, num_tasks(weights_.config, batch.num_tokens()));
  const size_t parts = cuts.size() - 1, lanes = kernels::num_lanes(parts);
  while (lanes_.size() < lanes) lanes_.push_back(std::make_unique<Lane>());

  // They change between calls; packed once, every part has them ready.
  const Weights weights = parts > 1 ? pack_weights(weights_, precision_, /*with_gradient=*/true) : weights_;
  const size_t width = static_cast<size_t>(weights.config.hidden_size);
  grad_x_.resize(batch.tokens.size() * width);
  std::vector<std::atomic<int>> turns(parts);
  kernels::parallel_tasks(parts, [&](size_t part, size_t lane_index) {
    kernels::Turn turn(part > 0 ? &turns[part - 1] : nullptr, &turns[part]);
    Lane& lane = *lanes_[lane_index];
    const PackedBatch sequences = batch.part(cuts[part], cuts[part + 1]);
    const int64_t begin = batch.sequence_begins[static_cast<size_t>(cuts[part])];
    forward(lane, weights, sequences, trace_budget_bytes_ / lanes);
    if (!stays_in_cache(weights.config)) lane.workspace.scratch = {};  // its memory is the head's now

    const auto first = std::lower_bound(rows.begin(), rows.end(), begin),
               last = std::lower_bound(first, rows.end(), begin + sequences.num_tokens());
    const auto row_of = [&](auto row) { return static_cast<size_t>(*row - begin) * width; };
    lane.states.resize(static_cast<size_t>(last - first) * width);
    lane.grad_states.resize(lane.states.size());
    lane.grad_states.fill(0);
    float* state = lane.states.data();
    for (auto row = first; row != last; ++row, state += width)
      std::copy_n(lane.hidden.data() + row_of(row), width, state);
    turn.take([&] {
      head(lane.grad_states, gradients.head(), lane.states, static_cast<size_t>(first - rows.begin()));
    });
    Buffer& grad_hidden = lane.hidden;
    grad_hidden.fill(0);
    const float* grad_state = lane.grad_states.data();
    for (auto row = first; row != last; ++row, grad_state += width)
      std::copy_n(grad_state, width, grad_hidden.data() + row_of(row));

    backward(lane, grad_x_.span().subspan(static_cast<size_t>(begin) * width, grad_hidden.size()), gradients,
             weights, sequences, turn);
  });
  // Behind every part's head, whose weights these may be.
  kernels::embedding_grad(gradients.embedding(), grad_x_, batch.tokens);
}

void TrainingPass::forward(Lane& lane, const Weights& weights, const PackedBatch& batch,
                           size_t trace_budget_bytes) const {
  const ModelConfig& c = weights.config;
  const size_t layers = weights.layers.size();
  const size_t trace_bytes = trace_bytes_per_token(c) * batch.tokens.size();
  const size_t kept = std::min(layers, trace_budget_bytes / std::max<size_t>(trace_bytes, 1));
  lane.traces.resize(kept);
  lane.inputs.resize(kept < layers ? layers - kept - 1 : 0);  // the last layer is not computed again

  Buffer& x = lane.workspace.x;
  x.resize(batch.tokens.size() * static_cast<size_t>(c.hidden_size));
  kernels::embedding(x, batch.tokens, weights.embedding.stored);
  const BlockContext context = this->context(lane, batch);
  const Attend attend = packed_attention(batch, c);
  for (size_t i = 0; i < layers; ++i) {
    if (i >= kept && i + 1 < layers) {
      Buffer& input = lane.inputs[i - kept];
      input.resize(x.size());
      std::copy_n(x.data(), x.size(), input.data());
    }
    block(x, i < kept ? lane.traces[i] : lane.workspace.trace, lane.workspace.scratch, weights.layers[i],
          context, attend);
  }
  lane.hidden.resize(x.size());
  lane.inv_rms.resize(batch.tokens.size());
  kernels::rms_norm(lane.hidden, lane.inv_rms, x, weights.final_norm, static_cast<float>(c.rms_norm_eps));
}

void TrainingPass::backward(Lane& lane, std::span<float> grad_x, Gradients& gradients, const Weights& weights,
                            const PackedBatch& batch, kernels::Turn& turn) const {
  const size_t layers = weights.layers.size(), kept = lane.traces.size();
  Workspace& workspace = lane.workspace;
  const BlockContext context = this->context(lane, batch);
  const Attend attend = packed_attention(batch, weights.config);
  // workspace.x still holds the last layer's output; recomputing layers reuses it, so move it out first.
  std::swap(lane.last, workspace.x);
  std::fill(grad_x.begin(), grad_x.end(), 0.0f);
  turn.take([&] {
    kernels::rms_norm_grad(grad_x, gradients.final_norm(), lane.hidden, lane.last, lane.inv_rms,
                           weights.final_norm);
  });
  for (size_t i = layers; i-- > 0;) {
    const BlockTrace* trace = i < kept ? &lane.traces[i] : &workspace.trace;
    if (i >= kept && i + 1 < layers) {  // the last layer's trace is still there
      Buffer& x = workspace.x;
      x.resize(lane.inputs[i - kept].size());
      std::copy_n(lane.inputs[i - kept].data(), x.size(), x.data());
      trace_block(x, workspace.trace, workspace.scratch, weights.layers[i], context, attend);
    }
    block_grad(grad_x, gradients.layer(static_cast<int64_t>(i)), *trace, workspace.scratch, weights.layers[i],
               context, batch.sequence_begins, turn);
  }
}

size_t TrainingPass::bytes() const {
  size_t sum = grad_x_.bytes();
  for (const auto& lane : lanes_) {
    sum += lane->workspace.trace.bytes();
    for (const Buffer* buffer : {&lane->last, &lane->hidden, &lane->states, &lane->grad_states})
      sum += buffer->bytes();
    for (const BlockTrace& trace : lane->traces) sum += trace.bytes();
    for (const Buffer& input : lane->inputs) sum += input.bytes();
  }
  return sum;
}

}  // namespace ropd::model
