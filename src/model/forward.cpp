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
#include "model/rope_frequencies.h"

namespace ropd::model {
namespace {

// Over a batch that holds the prefixes of its sequences.
Attend packed_attention(const PackedBatch& batch, const ModelConfig& c) {
  return [&batch, shape = attention_shape(c)](std::span<float> out, std::span<float> log_sum_exp,
                                              std::span<const float> q, std::span<const float> k,
                                              std::span<const float> v) {
    std::vector<kernels::SharedKeys> shared(batch.prefix_of.size());
    for (size_t s = 0; s < shared.size(); ++s)
      if (const int64_t prefix = batch.prefix_of[s]; prefix != PackedBatch::kNoPrefix) {
        const int64_t at =
            batch.sequence_begins[static_cast<size_t>(prefix)] * shape.num_kv_heads * shape.head_dim;
        shared[s] = {k.data() + at, v.data() + at, batch.length(prefix)};
      }
    kernels::attention(out, log_sum_exp, q, k, v, batch.sequence_begins, shape, shared);
  };
}

int64_t num_positions(const PackedBatch& batch) {
  return batch.positions.empty() ? 0 : *std::max_element(batch.positions.begin(), batch.positions.end()) + 1;
}

}  // namespace

const kernels::RopeTable& Workspace::rope_for(const ModelConfig& config, int64_t num_positions) {
  if (num_positions > rope.num_positions) {
    // Some room to grow, so that sequences that get longer one by one do not rebuild the table each time.
    const int64_t wanted =
        std::max(num_positions, std::min(2 * num_positions, config.max_position_embeddings));
    const RopeFrequencies frequencies = rope_frequencies(config);
    rope = kernels::make_rope_table(wanted, frequencies.inverse, frequencies.factor);
  }
  return rope;
}

void Workspace::provide_lanes(size_t count) {
  while (lanes.size() < count) lanes.push_back(std::make_unique<Workspace>());
}

int64_t num_tasks(const ModelConfig& config, int64_t tokens) {
  constexpr int64_t kWorthSharing = int64_t{1} << 22;  // products of weights and activations
  if (!stays_in_cache(config) || tokens * parameter_count(config) < kWorthSharing) return 1;
  const int64_t tasks = (tokens + kTokensPerTask - 1) / kTokensPerTask,
                threads = static_cast<int64_t>(num_lanes());
  return (tasks + threads - 1) / threads * threads;
}

void check_batch(const PackedBatch& batch, const ModelConfig& config) {
  for (int64_t s = 0; s < batch.num_sequences(); ++s) {
    const int64_t begin = batch.sequence_begins[static_cast<size_t>(s)],
                  end = batch.sequence_begins[static_cast<size_t>(s) + 1];
    for (int64_t t = begin; t < end; ++t) {
      const auto at = static_cast<size_t>(t);
      if (batch.positions[at] >= config.max_position_embeddings)
        fail("sequence ", s, ": ", batch.positions[static_cast<size_t>(end) - 1] + 1,
             " tokens, the model has max_position_embeddings = ", config.max_position_embeddings);
      if (batch.tokens[at] < 0 || batch.tokens[at] >= config.vocab_size)
        fail("sequence ", s, ", position ", batch.positions[at], ": id ", batch.tokens[at],
             " is outside the vocabulary of ", config.vocab_size, " (tokens of another model?)");
    }
  }
}

namespace {

// hidden [T, D] of sequences that go through the layers together.
void forward_together(std::span<float> hidden, const Weights& weights, const PackedBatch& batch,
                      Precision precision, Workspace& workspace,
                      const std::function<Attend(size_t layer)>& attention_in) {
  const ModelConfig& c = weights.config;
  Buffer& x = workspace.x;
  x.resize(batch.tokens.size() * static_cast<size_t>(c.hidden_size));
  kernels::embedding(x, batch.tokens, weights.embedding.stored);
  const BlockContext context{c, workspace.rope_for(c, num_positions(batch)), batch.positions, precision,
                             /*for_gradient=*/false};
  for (size_t i = 0; i < weights.layers.size(); ++i)
    block(x, workspace.trace, workspace.scratch, weights.layers[i], context, attention_in(i));
  workspace.trace.input_inv_rms.resize(batch.tokens.size());
  kernels::rms_norm(hidden, workspace.trace.input_inv_rms, x, weights.final_norm,
                    static_cast<float>(c.rms_norm_eps));
}

}  // namespace

void forward(std::span<float> hidden, const Weights& weights, const PackedBatch& batch, Precision precision,
             Workspace& workspace) {
  const ModelConfig& c = weights.config;
  check_batch(batch, c);
  if (!stays_in_cache(c) || !is_in_parallel()) {  // products that threads share should be large
    const Attend attend = packed_attention(batch, c);
    forward_together(hidden, weights, batch, precision, workspace, [&](size_t) { return attend; });
    return;
  }
  const auto parts =
      cut_into_parts(batch, (batch.num_tokens() + kTokensPerTask - 1) / kTokensPerTask, workspace.prefixes);
  for (const bool wants_prefixes : {true, false})
    for (const BatchPart& part : parts) {
      if (part.is_prefixes() != wants_prefixes) continue;
      const size_t width = static_cast<size_t>(c.hidden_size);
      forward_together(
          hidden.subspan(static_cast<size_t>(part.first_row) * width, part.batch.tokens.size() * width),
          weights, part.batch, precision, workspace, [&](size_t layer) {
            return part.is_prefixes() ? sharing_attention(part, layer, c) : part_attention(part, layer, c);
          });
    }
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
  return {weights_.config, lane.workspace.rope_for(weights_.config, num_positions(batch)), batch.positions,
          precision_};
}

void TrainingPass::accumulate(Gradients& gradients, const PackedBatch& batch, std::span<const int64_t> rows,
                              const HeadStep& head) {
  check_batch(batch, weights_.config);
  const auto parts = cut_into_parts(batch, num_tasks(weights_.config, batch.num_tokens()), prefixes_);
  std::vector<Lane*> own_lanes;  // of parts of prefixes, between their forward and their gradient
  for (size_t used = 0; const BatchPart& part : parts) {
    if (part.is_prefixes() && used == prefix_lanes_.size()) prefix_lanes_.push_back(std::make_unique<Lane>());
    own_lanes.push_back(part.is_prefixes() ? prefix_lanes_[used++].get() : nullptr);
  }
  // One more than threads: a part may wait for its turn while the next one is computed.
  const size_t threads = num_lanes(parts.size()), lanes = threads > 1 ? threads + 1 : 1;
  while (lanes_.size() < lanes) lanes_.push_back(std::make_unique<Lane>());

  // They change between calls; packed once, every part has them ready.
  const Weights weights =
      parts.size() > 1 ? pack_weights(weights_, precision_, /*with_gradient=*/true) : weights_;
  parallel_tasks(parts.size(), [&](size_t i, size_t) {
    if (own_lanes[i]) forward(*own_lanes[i], weights, parts[i], trace_budget_bytes_);
  });

  const size_t width = static_cast<size_t>(weights.config.hidden_size);
  grad_x_.resize(batch.tokens.size() * width);
  std::vector<std::atomic<int>> turns(parts.size()), layers_done(parts.size());
  const auto prepare = [&](size_t i, size_t lane_index) {
    if (own_lanes[i]) return;
    Lane& lane = *lanes_[lane_index];
    forward(lane, weights, parts[i], trace_budget_bytes_ / lanes);
    if (!stays_in_cache(weights.config)) lane.workspace.scratch = {};  // its memory is the head's now
  };
  const auto finish = [&](size_t i, size_t lane_index) {
    Turn turn(i > 0 ? &turns[i - 1] : nullptr, &turns[i]);
    Lane& lane = own_lanes[i] ? *own_lanes[i] : *lanes_[lane_index];
    const BatchPart& part = parts[i];
    const auto first = std::lower_bound(rows.begin(), rows.end(), part.first_row),
               last = std::lower_bound(first, rows.end(), part.first_row + part.batch.num_tokens());
    const auto row_of = [&](auto row) { return static_cast<size_t>(*row - part.first_row) * width; };
    lane.states.resize(static_cast<size_t>(last - first) * width);
    lane.grad_states.resize(lane.states.size());
    lane.grad_states.fill(0);
    float* state = lane.states.data();
    for (auto row = first; row != last; ++row, state += width)
      std::copy_n(lane.hidden.data() + row_of(row), width, state);
    turn.take([&] {
      if (first != last)
        head(lane.grad_states, gradients.head(), lane.states, static_cast<size_t>(first - rows.begin()));
    });
    Buffer& grad_hidden = lane.hidden;
    grad_hidden.fill(0);
    const float* grad_state = lane.grad_states.data();
    for (auto row = first; row != last; ++row, grad_state += width)
      std::copy_n(grad_state, width, grad_hidden.data() + row_of(row));
    backward(lane, grad_x_.span().subspan(static_cast<size_t>(part.first_row) * width, grad_hidden.size()),
             gradients, weights, part, turn, layers_done[i]);
  };
  // Right behind the part before it a part would wait for every addition.
  const auto is_early = [&](size_t i) {
    return i > 0 &&
           2 * layers_done[i - 1].load(std::memory_order_relaxed) < static_cast<int>(weights.layers.size());
  };
  parallel_in_two_steps(parts.size(), lanes, prepare, is_early, finish);
  // Behind every part's head, whose weights these may be.
  kernels::embedding_grad(gradients.embedding(), grad_x_, batch.tokens);
}

void TrainingPass::forward(Lane& lane, const Weights& weights, const BatchPart& part,
                           size_t trace_budget_bytes) const {
  const ModelConfig& c = weights.config;
  const PackedBatch& batch = part.batch;
  const size_t layers = weights.layers.size();
  const size_t trace_bytes = trace_bytes_per_token(c) * batch.tokens.size();
  const size_t kept = std::min(layers, trace_budget_bytes / std::max<size_t>(trace_bytes, 1));
  lane.traces.resize(kept);
  lane.inputs.resize(kept < layers ? layers - kept - 1 : 0);  // the last layer is not computed again

  Buffer& x = lane.workspace.x;
  x.resize(batch.tokens.size() * static_cast<size_t>(c.hidden_size));
  kernels::embedding(x, batch.tokens, weights.embedding.stored);
  const BlockContext context = this->context(lane, batch);
  for (size_t i = 0; i < layers; ++i) {
    if (i >= kept && i + 1 < layers) {
      Buffer& input = lane.inputs[i - kept];
      input.resize(x.size());
      std::copy_n(x.data(), x.size(), input.data());
    }
    block(x, i < kept ? lane.traces[i] : lane.workspace.trace, lane.workspace.scratch, weights.layers[i],
          context, part.is_prefixes() ? sharing_attention(part, i, c) : part_attention(part, i, c));
  }
  lane.hidden.resize(x.size());
  lane.inv_rms.resize(batch.tokens.size());
  kernels::rms_norm(lane.hidden, lane.inv_rms, x, weights.final_norm, static_cast<float>(c.rms_norm_eps));
}

void TrainingPass::backward(Lane& lane, std::span<float> grad_x, Gradients& gradients, const Weights& weights,
                            const BatchPart& part, Turn& turn, std::atomic<int>& layers_done) const {
  const size_t layers = weights.layers.size(), kept = lane.traces.size();
  Workspace& workspace = lane.workspace;
  const BlockContext context = this->context(lane, part.batch);
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
      trace_block(x, workspace.trace, workspace.scratch, weights.layers[i], context,
                  part_attention(part, i, weights.config));
    }
    block_grad(grad_x, gradients.layer(static_cast<int64_t>(i)), *trace, workspace.scratch, weights.layers[i],
               context, part.sequences_in(i), turn);
    layers_done.fetch_add(1, std::memory_order_relaxed);
  }
}

size_t TrainingPass::bytes() const {
  size_t sum = grad_x_.bytes();
  for (const auto* lanes : {&lanes_, &prefix_lanes_})
    for (const auto& lane : *lanes) {
      sum += lane->workspace.trace.bytes();
      for (const Buffer* buffer : {&lane->last, &lane->hidden, &lane->states, &lane->grad_states})
        sum += buffer->bytes();
      for (const BlockTrace& trace : lane->traces) sum += trace.bytes();
      for (const Buffer& input : lane->inputs) sum += input.bytes();
    }
  for (const SharedPrefix& prefix : prefixes_)
    for (const PrefixLayer& layer : prefix.layers)
      for (const Buffer* buffer : {&layer.k, &layer.v, &layer.grad_k, &layer.grad_v}) sum += buffer->bytes();
  return sum;
}

}  // namespace ropd::model
