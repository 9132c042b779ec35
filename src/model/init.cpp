#include "model/init.h"

#include <cmath>
#include <numbers>
#include <string_view>

#include "base/parallel.h"
#include "base/rng.h"

namespace ropd::model {
namespace {

// Box-Muller on one counter value; u0 > 0 keeps the logarithm finite.
double normal(uint64_t seed, uint64_t tensor, uint32_t index) {
  const auto bits = random_bits(seed, Purpose::weight_init, {tensor, index, 0});
  const double u0 = (static_cast<double>(bits[0]) + 0.5) * 0x1p-32,
               u1 = static_cast<double>(bits[1]) * 0x1p-32;
  return std::sqrt(-2 * std::log(u0)) * std::cos(2 * std::numbers::pi * u1);
}

}  // namespace

void initialize(Parameters& parameters, const InitSettings& settings) {
  const double depth = std::sqrt(2.0 * static_cast<double>(parameters.config().num_layers));
  for (size_t s = 0; s < parameters.slots().size(); ++s) {
    const ParameterSlot& slot = parameters.slots()[s];
    const auto values =
        parameters.values().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
    const auto ends_with = [&](std::string_view end) { return slot.name.ends_with(end); };
    if (slot.shape.size() == 1) {
      const bool is_qk_norm = ends_with("q_norm.weight") || ends_with("k_norm.weight");
      const float value = ends_with(".bias") ? 0.0f : is_qk_norm ? settings.qk_norm_gain : 1.0f;
      for (float& v : values) v = value;
      continue;
    }
    double scale = settings.linear_gain / std::sqrt(static_cast<double>(slot.shape[1]));
    if (ends_with("o_proj.weight") || ends_with("down_proj.weight")) scale /= depth;
    if (ends_with("embed_tokens.weight")) scale = settings.embedding_scale;
    const int64_t count = static_cast<int64_t>(values.size());
    parallel_chunks(count, 1 << 12, 64 * count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        values[static_cast<size_t>(i)] =
            static_cast<float>(scale * normal(settings.seed, s, static_cast<uint32_t>(i)));
    });
  }
}

}  // namespace ropd::model
