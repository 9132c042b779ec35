#include "optim/clip.h"

#include <cassert>
#include <cmath>
#include <sstream>

#include "base/block_sum.h"

namespace ropd::optim {

double global_norm(std::span<const float> gradient) {
  const float* values = gradient.data();
  return std::sqrt(block_sum(gradient.size(), [values](size_t i) {
    const double value = values[i];
    return value * value;
  }));
}

double clip_coefficient(double norm, double max_norm) {
  assert(std::isfinite(norm));
  return max_norm > 0 && norm > max_norm ? max_norm / norm : 1.0;
}

std::optional<NonFinite> find_non_finite(std::span<const float> gradient,
                                         std::span<const TensorRange> tensors) {
  NonFinite found;
  size_t first = 0;
  for (size_t i = 0; i < gradient.size(); ++i)
    if (!std::isfinite(gradient[i]) && found.count++ == 0) first = i;
  if (found.count == 0) return std::nullopt;
  found.value = gradient[first];
  found.tensor = "gradient";
  found.index = first;
  for (const TensorRange& tensor : tensors) {
    if (first < tensor.offset || first - tensor.offset >= tensor.size) continue;
    found.tensor = tensor.name;
    found.index = first - tensor.offset;
  }
  return found;
}

std::string describe(const NonFinite& found, size_t gradient_size) {
  std::ostringstream text;
  text << found.tensor << "[" << found.index << "] is " << found.value << " (" << found.count << " of "
       << gradient_size << " gradient values not finite)";
  return text.str();
}

}  // namespace ropd::optim
