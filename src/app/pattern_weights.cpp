#include "app/pattern_weights.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/parallel.h"

namespace ropd::app {
namespace {

float pattern_value(size_t i, float scale) {
  return scale * (static_cast<float>((i * 2654435761u) >> 8 & 0xffff) / 32768.0f - 1.0f);
}

// Calls make(i) for every i below count, on all threads.
template <class Make>
void for_all(size_t count, const Make& make) {
  constexpr int64_t kChunk = 1 << 14;
  parallel_chunks(static_cast<int64_t>(count), kChunk, 4 * static_cast<int64_t>(count),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) make(static_cast<size_t>(i));
                  });
}

}  // namespace

void fill_pattern(std::span<float> values, float scale) {
  for_all(values.size(), [&](size_t i) { values[i] = pattern_value(i, scale); });
}

model::Weights pattern_weights(const ModelConfig& config, DType dtype, float scale) {
  struct Owner {
    std::vector<std::byte> matrices;
    Buffer ones;
  };
  auto owner = std::make_shared<Owner>();
  const auto slots = model::parameter_layout(config);
  std::unordered_map<std::string, const model::ParameterSlot*> by_name;
  int64_t longest = 1;
  for (const model::ParameterSlot& slot : slots) {
    by_name[slot.name] = &slot;
    if (slot.shape.size() == 1) longest = std::max(longest, slot.size);
  }
  const size_t count = static_cast<size_t>(slots.back().offset + slots.back().size);
  owner->matrices.resize(count * dtype_bytes(dtype));
  owner->ones.resize(static_cast<size_t>(longest));
  owner->ones.fill(1.0f);
  for_all(count, [&](size_t i) {
    const float value = pattern_value(i, scale);
    if (dtype == DType::f32)
      reinterpret_cast<float*>(owner->matrices.data())[i] = value;
    else
      reinterpret_cast<uint16_t*>(owner->matrices.data())[i] =
          dtype == DType::bf16 ? float_to_bf16(value) : float_to_f16(value);
  });
  model::Weights weights = model::assemble_weights(
      config,
      [&](const std::string& name) {
        return owner->ones.span().first(static_cast<size_t>(by_name.at(name)->size));
      },
      [&](const std::string& name) {
        const model::ParameterSlot& slot = *by_name.at(name);
        return model::Linear{{owner->matrices.data() + static_cast<size_t>(slot.offset) * dtype_bytes(dtype),
                              dtype, slot.shape[0], slot.shape[1]},
                             nullptr};
      });
  weights.owner = owner;
  return weights;
}

}  // namespace ropd::app
