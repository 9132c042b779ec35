#include "model/merged_layer.h"

#include <cstddef>

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
  const DType dtype = precision == Precision::f32 ? DType::f32 : DType::bf16;
  values_.resize((size * dtype_bytes(dtype) + sizeof(float) - 1) / sizeof(float));
  auto* to = reinterpret_cast<std::byte*>(values_.data());
  for_each_matrix(layer_, [&](const std::string&, Linear& linear) {
    if (!linear.needs_merge(precision, with_gradient)) return;
    if (dtype == DType::f32)
      kernels::merge_low_rank(std::span(reinterpret_cast<float*>(to), size_of(linear)), linear.stored,
                              linear.change);
    else
      kernels::merge_low_rank(std::span(reinterpret_cast<Bf16*>(to), size_of(linear)), linear.stored,
                              linear.change);
    linear.stored = {to, dtype, linear.outputs(), linear.inputs()};
    linear.is_merged = true;
    to += size_of(linear) * dtype_bytes(dtype);
  });
  return layer_;
}

}  // namespace ropd::model
