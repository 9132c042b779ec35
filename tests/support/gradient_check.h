// Central differences against a hand-written gradient.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace ropd::test {

inline std::vector<float> random_values(size_t count, uint32_t seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

inline double dot(std::span<const float> a, std::span<const float> b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += static_cast<double>(a[i]) * b[i];
  return total;
}

// `loss` is a function of the values of `parameters` (f32, evaluated as precisely as it can); `gradient`
// claims its derivative. Checks up to max_checks evenly spaced entries. The error of a derivative may be
// tolerance * (1 + the largest |gradient|).
inline void gradient_check(const std::string& what, std::span<float> parameters,
                           std::span<const float> gradient, const std::function<double()>& loss,
                           double tolerance = 2e-3, float step = 1e-2f, size_t max_checks = 40) {
  ASSERT_EQ(parameters.size(), gradient.size()) << what;
  float largest = 0;
  for (float value : gradient) {
    ASSERT_TRUE(std::isfinite(value)) << what;
    largest = std::max(largest, std::abs(value));
  }
  const size_t stride = std::max<size_t>(1, parameters.size() / max_checks);
  for (size_t i = 0; i < parameters.size(); i += stride) {
    const float original = parameters[i];
    const float above = original + step, below = original - step;
    parameters[i] = above;
    const double loss_above = loss();
    parameters[i] = below;
    const double loss_below = loss();
    parameters[i] = original;
    const double expected = (loss_above - loss_below) / (static_cast<double>(above) - below);
    EXPECT_NEAR(gradient[i], expected, tolerance * (1.0 + largest)) << what << "[" << i << "]";
  }
}

}  // namespace ropd::test
