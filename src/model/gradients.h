// Gradients in the flat layout of what is trained: all Parameters, or an adapter's. Owned, large; views of
// single tensors stay valid when moved.
#pragma once
#include <span>
#include <vector>

#include "model/block.h"
#include "tensor/buffer.h"

namespace ropd::model {

class Gradients {
 public:
  // All zero. Of everything that has a slot (weights.h, adapter.h); the rest is frozen. Dense models only:
  // mixtures of experts are teachers.
  Gradients(std::vector<ParameterSlot> slots, int64_t num_layers);
  explicit Gradients(const ModelConfig& config) : Gradients(parameter_layout(config), config.num_layers) {}
  // All zero, of the same.
  Gradients like_this() const { return {slots_, static_cast<int64_t>(layers_.size())}; }
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  void clear() { values_.fill(0); }
  const LayerGradients& layer(size_t index) const { return layers_[index]; }
  // Empty where frozen.
  std::span<float> embedding() { return embedding_; }
  std::span<float> head() { return head_; }  // the embedding's when tied
  std::span<float> final_norm() { return final_norm_; }

 private:
  std::vector<ParameterSlot> slots_;
  Buffer values_;
  std::vector<LayerGradients> layers_;
  std::span<float> embedding_, head_, final_norm_;
};

// sum = ((g0 + g1) + g2) + ... element by element in this order, by all threads. `sum` holds g0.
void add_in_order(Gradients& sum, std::span<const Gradients> rest);

}  // namespace ropd::model
