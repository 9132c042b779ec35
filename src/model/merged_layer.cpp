#include "model/merged_layer.h"

#include <algorithm>

namespace ropd::model {
namespace {

size_t size_of(const Linear& linear) { return static_cast<size_t>(linear.outputs() * linear.inputs()); }

}  // namespace

const LayerWeights& MergedLayer::of(const LayerWeights& layer, Precision precision, bool with_gradient) {
  size_t size = 0;
  LayerWeights copy = layer;
  for_each_matrix(copy, [&](const std::string&, Linear& linear) {
    if (linear.needs_merge(precision, with_gradient)) size += size_of(linear);
  });
  if (size == 0) return layer;
  layer_ = std::move(copy);
  values_.resize(size);
  float* to = values_.data();
  for_each_matrix(layer_, [&](const std::string&, Linear& linear) {
    if (!linear.needs_merge(precision, with_gradient)) return;
    kernels::merge_low_rank({to, size_of(linear)}, linear.stored, linear.change);
    linear.stored = {to, DType::f32, linear.outputs(), linear.inputs()};
    linear.is_merged = true;
    to += size_of(linear);
  });
  return layer_;
}

uint64_t merged_layer_bytes(const Weights& weights) {
  uint64_t most = 0;
  for (LayerWeights layer : weights.layers) {
    uint64_t bytes = 0;
    for_each_matrix(layer, [&](const std::string&, Linear& linear) {
      if (linear.change.rank > 0) bytes += size_of(linear) * sizeof(float);
    });
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace ropd::model
