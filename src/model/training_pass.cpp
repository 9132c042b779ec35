#include "model/training_pass.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/embedding.h"
#include "kernels/rms_norm.h"
#include "model/forward.h"

namespace ropd::model {

BlockContext TrainingPass::context() {
  return {weights_->config, workspace_.rope_for(weights_->config, part_.num_positions()), part_.positions,
          precision_};
}

size_t TrainingPass::trace_bytes() const {
  size_t sum = workspace_.trace.bytes();
  for (const BlockTrace& trace : traces_) sum += trace.bytes();
  for (const Buffer& input : inputs_) sum += input.bytes();
  return sum;
}

// Short parts keep the traces of more layers, long ones larger traces. What both leave behind would be more than
// either needs, and more than was planned: then it is given back first.
void TrainingPass::provide_traces(const ModelConfig& c, size_t tokens) {
  const size_t layers = static_cast<size_t>(c.num_layers), trace = trace_bytes_per_token(c) * tokens,
               input = static_cast<size_t>(c.hidden_size) * tokens * sizeof(float);
  const size_t kept = std::min(layers, trace_budget_bytes_ / std::max<size_t>(trace, 1));
  const size_t num_inputs = kept < layers ? layers - kept - 1 : 0, num_again = kept < layers ? 1 : 0;
  most_trace_bytes_ = std::max(most_trace_bytes_, (kept + num_again) * trace + num_inputs * input);
  traces_.resize(kept);
  inputs_.resize(num_inputs);
  size_t held = num_again > 0 ? std::max(workspace_.trace.bytes(), trace) : workspace_.trace.bytes();
  for (const BlockTrace& t : traces_) held += std::max(t.bytes(), trace);
  for (const Buffer& i : inputs_) held += std::max(i.bytes(), input);
  if (held <= most_trace_bytes_ + most_trace_bytes_ / 64) return;  // buffers are rounded up
  workspace_.trace = {};
  for (BlockTrace& t : traces_) t = {};
  for (Buffer& i : inputs_) i = {};
}

std::span<const float> TrainingPass::forward(const Weights& weights, PackedBatch part,
                                             std::vector<int64_t> rows, const OnLayer& on_layer) {
  const ModelConfig& c = weights.config;
  check_batch(part, c);
  weights_ = &weights;
  part_ = std::move(part);
  rows_ = std::move(rows);
  provide_traces(c, part_.tokens.size());
  const size_t layers = weights.layers.size(), kept = traces_.size(),
               width = static_cast<size_t>(c.hidden_size);
  Buffer& x = workspace_.x;
  x.resize(part_.tokens.size() * width);
  kernels::embedding(x, part_.tokens, weights.embedding.stored);
  const BlockContext context = this->context();
  const Attend attend = packed_attention(part_, c);
  for (size_t i = 0; i < layers; ++i) {
    if (on_layer) on_layer(i);
    if (i >= kept && i + 1 < layers) {
      Buffer& input = inputs_[i - kept];
      input.resize(x.size());
      std::copy_n(x.data(), x.size(), input.data());
    }
    block(x, i < kept ? traces_[i] : workspace_.trace, workspace_.scratch,
          workspace_.merged.of(weights.layers[i], precision_), context, attend);
  }
  hidden_.resize(x.size());
  inv_rms_.resize(part_.tokens.size());
  kernels::rms_norm(hidden_, inv_rms_, x, weights.final_norm, static_cast<float>(c.rms_norm_eps));

  row_begins_.clear();
  for (const int64_t begin : part_.sequence_begins)
    row_begins_.push_back(std::lower_bound(rows_.begin(), rows_.end(), begin) - rows_.begin());
  states_.resize(rows_.size() * width);
  for (size_t r = 0; r < rows_.size(); ++r)
    std::copy_n(hidden_.data() + static_cast<size_t>(rows_[r]) * width, width, states_.data() + r * width);
  return states_;
}

void TrainingPass::backward(Gradients& gradients, std::span<const float> grad_states,
                            const OnLayer& on_layer) {
  assert(grad_states.size() == states_.size());
  const Weights& weights = *weights_;
  const size_t layers = weights.layers.size(), kept = traces_.size(),
               width = static_cast<size_t>(weights.config.hidden_size);
  const BlockContext context = this->context();
  const Attend attend = packed_attention(part_, weights.config);
  Buffer& grad_hidden = hidden_;
  grad_hidden.fill(0);
  for (size_t r = 0; r < rows_.size(); ++r)
    std::copy_n(grad_states.data() + r * width, width,
                grad_hidden.data() + static_cast<size_t>(rows_[r]) * width);

  if (embedded_.size() == num_embedded_) embedded_.emplace_back();
  Embedded& embedded = embedded_[num_embedded_++];
  Buffer& grad_x = embedded.grad;
  grad_x.resize(hidden_.size());
  grad_x.fill(0);
  // workspace_.x still holds the last layer's output; recomputing layers reuses it, so move it out first.
  std::swap(last_, workspace_.x);
  kernels::rms_norm_grad(grad_x, gradients.final_norm(), grad_hidden, last_, inv_rms_, weights.final_norm);
  for (size_t i = layers; i-- > 0;) {
    if (on_layer) on_layer(layers - 1 - i);
    const BlockTrace& trace = i < kept ? traces_[i] : workspace_.trace;
    const LayerWeights& layer = workspace_.merged.of(weights.layers[i], precision_, /*with_gradient=*/true);
    if (i >= kept && i + 1 < layers) {  // the last layer's trace is still there
      Buffer& x = workspace_.x;
      x.resize(inputs_[i - kept].size());
      std::copy_n(inputs_[i - kept].data(), x.size(), x.data());
      trace_block(x, workspace_.trace, workspace_.scratch, layer, context, attend);
    }
    block_grad(grad_x, gradients.layer(i), trace, workspace_.scratch, layer, context, part_.sequence_begins);
  }
  if (gradients.embedding().empty())
    --num_embedded_;  // frozen
  else
    embedded.tokens = std::move(part_.tokens);
}

void TrainingPass::finish(Gradients& gradients) {
  for (size_t i = 0; i < num_embedded_; ++i)
    kernels::embedding_grad(gradients.embedding(), embedded_[i].grad, embedded_[i].tokens);
  num_embedded_ = 0;
}

}  // namespace ropd::model
