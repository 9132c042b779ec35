#include "optim/clip.h"

#include <cassert>
#include <cmath>
#include <sstream>

#include "base/block_sum.h"

namespace ropd::optim {

std::vector<double> squares_by_block(std::span<const float> gradient) {
  const float* values = gradient.data();
  return block_sums(gradient.size(), [values](size_t i) {
    const double value = values[i];
    return value * value;
  });
}

double global_norm(std::span<const float> gradient) {
  return std::sqrt(sum_in_order(squares_by_block(gradient)));
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
  found.index = first;
  name_place(found, tensors);
  return found;
}

void name_place(NonFinite& found, std::span<const TensorRange> tensors) {
  const size_t place = found.index;
  found.tensor = "gradient";
  for (const TensorRange& tensor : tensors) {
    if (place < tensor.offset || place - tensor.offset >= tensor.size) continue;
    found.tensor = tensor.name;
    found.index = place - tensor.offset;
  }
}

std::string describe(const NonFinite& found, size_t gradient_size) {
  std::ostringstream text;
  text << found.tensor << "[" << found.index << "] is " << found.value << " (" << found.count << " of "
       << gradient_size << " gradient values not finite)";
  return text.str();
}

}  // namespace ropd::optim
