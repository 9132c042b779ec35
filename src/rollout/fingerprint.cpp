#include "rollout/fingerprint.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "base/parallel.h"
#include "io/rollout_file.h"

namespace ropd::rollout {
namespace {

constexpr int64_t kBlockValues = int64_t{1} << 20;

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

// A stretch of a matrix's values.
struct Block {
  const model::Linear* matrix = nullptr;
  int64_t begin = 0, size = 0;
};

std::string hash_of(const Block& block) {
  const void* data = block.matrix->stored.data;
  const DType dtype = block.matrix->stored.dtype;
  if (dtype == DType::f32)
    return sha256(std::as_bytes(
        std::span(static_cast<const float*>(data) + block.begin, static_cast<size_t>(block.size))));
  std::vector<float> values(static_cast<size_t>(block.size));
  const uint16_t* bits = static_cast<const uint16_t*>(data) + block.begin;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = dtype == DType::bf16 ? bf16_to_float(bits[i]) : f16_to_float(bits[i]);
  return sha256(std::as_bytes(std::span(values)));
}

class Matrices {
 public:
  void add(const model::Linear& matrix) {
    put(shapes_, matrix.outputs());
    put(shapes_, matrix.inputs());
    const int64_t size = matrix.outputs() * matrix.inputs();
    for (int64_t begin = 0; begin < size; begin += kBlockValues)
      blocks_.push_back({&matrix, begin, std::min(kBlockValues, size - begin)});
    add_change(matrix);
  }
  // Shapes, then the hash of every block and every low-rank change.
  std::string bytes() const {
    std::vector<std::string> hashes(blocks_.size());
    parallel_tasks(blocks_.size(), [&](size_t i, size_t) { hashes[i] = hash_of(blocks_[i]); });
    std::string all = shapes_;
    for (const std::string& hash : hashes) all += hash;
    return all + changes_;
  }

 private:
  std::string shapes_, changes_;
  std::vector<Block> blocks_;

  // With B at zero, as adapters begin, nothing is changed.
  void add_change(const model::Linear& matrix) {
    const kernels::LowRank& change = matrix.change;
    const std::span b(change.b, static_cast<size_t>(matrix.outputs() * change.rank)),
        a(change.a, static_cast<size_t>(matrix.inputs() * change.rank));
    if (std::all_of(b.begin(), b.end(), [](float value) { return value == 0; })) return;
    put(changes_, static_cast<int64_t>(blocks_.size()));  // which matrix
    put(changes_, change.scale);
    changes_ += sha256(std::as_bytes(a)) + sha256(std::as_bytes(b));
  }
};

}  // namespace

std::string weights_fingerprint(const model::Weights& weights) {
  Matrices matrices;
  std::string bytes;
  matrices.add(weights.embedding);
  matrices.add(weights.head);
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
      matrices.add(*linear);
    for (const model::Expert& expert : layer.experts)
      for (const model::Linear* linear : {&expert.gate, &expert.up, &expert.down}) matrices.add(*linear);
  }
  return io::kFingerprintOfAllValues + sha256(bytes + matrices.bytes());
}

}  // namespace ropd::rollout
