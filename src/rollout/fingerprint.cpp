#include "rollout/fingerprint.h"

#include <algorithm>
#include <cstring>

#include "base/file.h"

namespace ropd::rollout {
namespace {

constexpr int64_t kSampledValues = 4096;

template <class Value>
void put(std::string& bytes, Value value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof raw);
}

void put_vector(std::string& bytes, std::span<const float> values) {
  put(bytes, static_cast<int64_t>(values.size()));
  for (const float value : values) put(bytes, value);
}

void put_matrix(std::string& bytes, const model::Linear& linear) {
  put(bytes, linear.outputs());
  put(bytes, linear.inputs());
  const int64_t size = linear.outputs() * linear.inputs();
  const int64_t count = std::min(size, kSampledValues);
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(static_cast<__int128>(size) * i / count);
    const void* data = linear.stored.data;
    if (linear.stored.dtype == DType::f32) {
      put(bytes, static_cast<const float*>(data)[at]);
    } else {
      const uint16_t bits = static_cast<const uint16_t*>(data)[at];
      put(bytes, linear.stored.dtype == DType::bf16 ? bf16_to_float(bits) : f16_to_float(bits));
    }
  }
}

}  // namespace

std::string weights_fingerprint(const model::Weights& weights) {
  std::string bytes;
  put_matrix(bytes, weights.embedding);
  put_matrix(bytes, weights.head);
  put_vector(bytes, weights.final_norm);
  put(bytes, weights.config.rope_theta);
  if (const RopeScaling& scaling = weights.config.rope_scaling; scaling.kind != RopeScaling::Kind::none)
    for (const double value :
         {scaling.factor, scaling.original_positions, scaling.low_frequency, scaling.high_frequency,
          scaling.slow_rotations, scaling.fast_rotations, scaling.attention_factor})
      put(bytes, value);
  put(bytes, weights.config.rms_norm_eps);
  put(bytes, weights.config.num_heads);
  put(bytes, weights.config.num_experts_per_token);
  for (const model::LayerWeights& layer : weights.layers) {
    for (const auto& vector : {layer.input_norm, layer.q_bias, layer.k_bias, layer.v_bias, layer.q_norm,
                               layer.k_norm, layer.post_attention_norm})
      put_vector(bytes, vector);
    for (const model::Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down, &layer.router})
      put_matrix(bytes, *linear);
    for (const model::Expert& expert : layer.experts)
      for (const model::Linear* linear : {&expert.gate, &expert.up, &expert.down}) put_matrix(bytes, *linear);
  }
  return sha256(bytes);
}

}  // namespace ropd::rollout
