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

BlockContext TrainingPass::context(const PackedBatch& batch) {
  return {weights_.config, workspace_.rope_for(weights_.config, longest(batch)), batch.positions, precision_};
}

std::span<const float> TrainingPass::forward(const PackedBatch& batch) {
  const ModelConfig& c = weights_.config;
  check_batch(batch, c);
  const size_t layers = weights_.layers.size();
  const size_t trace_bytes = trace_bytes_per_token(c) * batch.tokens.size();
  const size_t kept = std::min(layers, trace_budget_bytes_ / std::max<size_t>(trace_bytes, 1));
  traces_.resize(kept);
  inputs_.resize(layers - kept);

  Buffer& x = workspace_.x;
  x.resize(batch.tokens.size() * static_cast<size_t>(c.hidden_size));
  kernels::embedding(x, batch.tokens, weights_.embedding.stored);
  const BlockContext context = this->context(batch);
  const Attend attend = packed_attention(batch, c);
  for (size_t i = 0; i < layers; ++i) {
    if (i >= kept) {
      Buffer& input = inputs_[i - kept];
      input.resize(x.size());
      std::copy_n(x.data(), x.size(), input.data());
    }
    block(x, i < kept ? traces_[i] : workspace_.trace, workspace_.scratch, weights_.layers[i], context,
          attend);
  }
  hidden_.resize(x.size());
  inv_rms_.resize(batch.tokens.size());
  kernels::rms_norm(hidden_, inv_rms_, x, weights_.final_norm, static_cast<float>(c.rms_norm_eps));
  return std::as_const(hidden_);
}

void TrainingPass::backward(Gradients& gradients, std::span<float> grad_hidden, const PackedBatch& batch) {
  const size_t layers = weights_.layers.size(), kept = traces_.size();
  const BlockContext context = this->context(batch);
  const Attend attend = packed_attention(batch, weights_.config);
  // workspace_.x still holds the last layer's output when every trace was kept; recomputing layers reuses it,
  // so move it out first.
  std::swap(last_, workspace_.x);
  Buffer grad_x(last_.size());
  grad_x.fill(0);
  kernels::rms_norm_grad(grad_x, gradients.final_norm(), grad_hidden, last_, inv_rms_, weights_.final_norm);
  for (size_t i = layers; i-- > 0;) {
    const BlockTrace* trace = i < kept ? &traces_[i] : &workspace_.trace;
    if (i >= kept) {
      Buffer& x = workspace_.x;
      x.resize(inputs_[i - kept].size());
      std::copy_n(inputs_[i - kept].data(), x.size(), x.data());
      block(x, workspace_.trace, workspace_.scratch, weights_.layers[i], context, attend);
    }
    block_grad(grad_x, gradients.layer(static_cast<int64_t>(i)), *trace, workspace_.scratch,
               weights_.layers[i], context, batch.sequence_begins);
  }
  kernels::embedding_grad(gradients.embedding(), grad_x, batch.tokens);
}

size_t TrainingPass::bytes() const {
  size_t sum = workspace_.trace.bytes() + hidden_.bytes() + last_.bytes();
  for (const BlockTrace& trace : traces_) sum += trace.bytes();
  for (const Buffer& input : inputs_) sum += input.bytes();
  return sum;
}

}  // namespace ropd::model
