// Global gradient norm and its clip.
//   norm = sqrt(sum g^2)      coefficient = min(1, max_norm / norm)
// The sum is in double over fixed blocks (base/block_sum.h): the same bits for any number of threads, and no
// finite gradient overflows, so the norm is finite exactly when every element is.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ropd::optim {

// Where a parameter tensor lies in the flat gradient.
struct TensorRange {
  std::string name;
  size_t offset = 0;
  size_t size = 0;
};

// The first element that is NaN or infinite, and how many there are.
struct NonFinite {
  std::string tensor;
  size_t index = 0;  // inside the tensor
  float value = 0;
  size_t count = 0;  // in the whole gradient
};

[[nodiscard]] double global_norm(std::span<const float> gradient);  // [N]
// The sums of squares that it is the root of, by blocks.
[[nodiscard]] std::vector<double> squares_by_block(std::span<const float> gradient);

// What the gradient is to be multiplied by; 1 when max_norm is 0 (off) or the norm is within it. norm must be
// finite.
[[nodiscard]] double clip_coefficient(double norm, double max_norm);

// Nothing when every element is finite. tensors must be in ascending order of offset.
[[nodiscard]] std::optional<NonFinite> find_non_finite(std::span<const float> gradient,  // [N]
                                                       std::span<const TensorRange> tensors);

// Says in which tensor an element of the whole gradient lies.
void name_place(NonFinite& found, std::span<const TensorRange> tensors);

// "layers.3.mlp.up_proj.weight[17] is nan (1 of 590,000 values not finite)"
[[nodiscard]] std::string describe(const NonFinite& found, size_t gradient_size);

}  // namespace ropd::optim
