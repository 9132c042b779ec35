// Gradients in the flat layout of Parameters. Owned, large; views of single tensors stay valid when moved.
#pragma once
#include <span>
#include <vector>

#include "model/block.h"
#include "records/model_config.h"
#include "tensor/buffer.h"

namespace ropd::model {

class Gradients {
 public:
  // All zero. Dense models only: mixtures of experts are teachers.
  explicit Gradients(const ModelConfig& config);
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  void clear() { values_.fill(0); }
  const LayerGradients& layer(size_t index) const { return layers_[index]; }
  std::span<float> embedding() { return embedding_; }
  std::span<float> head() { return head_; }  // the embedding's when tied
  std::span<float> final_norm() { return final_norm_; }

 private:
  Buffer values_;
  std::vector<LayerGradients> layers_;
  std::span<float> embedding_, head_, final_norm_;
};

// sum = ((g0 + g1) + g2) + ... element by element in this order, by all threads. `sum` holds g0.
void add_in_order(Gradients& sum, std::span<const Gradients> rest);

}  // namespace ropd::model
