#include "kernels/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/gradient_check.h"

namespace ropd::kernels {
namespace {

using ropd::test::dot;
using ropd::test::random_values;

TEST(Rope, TurnsPairsHalfAHeadApart) {
  for (const int64_t width : {2, 6, 24, 32, 128}) {
    const int64_t heads = 3, half = width / 2;
    const RopeTable table = make_rope_table(40, rope_inverse_frequencies(width, 10000.0));
    const std::vector<int32_t> positions = {0, 5, 39, 1};
    const auto x = random_values(static_cast<size_t>(4 * heads * width), 1);
    auto y = x;
    rope(y, positions, table, heads);
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < half; ++i) {
          const double angle = positions[static_cast<size_t>(t)] *
                               std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(width));
          const size_t first = static_cast<size_t>((t * heads + h) * width + i),
                       second = first + static_cast<size_t>(half);
          ASSERT_NEAR(y[first], x[first] * std::cos(angle) - x[second] * std::sin(angle), 2e-6);
          ASSERT_NEAR(y[second], x[second] * std::cos(angle) + x[first] * std::sin(angle), 2e-6);
        }
  }
}

TEST(Rope, LeavesPositionZeroAlone) {
  const RopeTable table = make_rope_table(1, rope_inverse_frequencies(8, 1e6));
  const auto x = random_values(8, 2);
  auto y = x;
  rope(y, std::vector<int32_t>{0}, table, 1);
  EXPECT_EQ(x, y);
}

TEST(Rope, GradientIsTheTransposedRotation) {
  const RopeTable table = make_rope_table(100, rope_inverse_frequencies(18, 10000.0), 1.25);
  const std::vector<int32_t> positions = {3, 99, 50};
  const auto x = random_values(3 * 2 * 18, 3), grad_y = random_values(x.size(), 4);
  auto y = x, grad_x = grad_y;
  rope(y, positions, table, 2);
  rope_grad(grad_x, positions, table, 2);
  EXPECT_NEAR(dot(y, grad_y), dot(x, grad_x), 1e-4);  // <R x, g> = <x, R' g>
}

TEST(Rope, FactorScalesTheResult) {
  const auto frequencies = rope_inverse_frequencies(4, 10000.0);
  auto plain = random_values(4, 5), scaled = plain;
  rope(plain, std::vector<int32_t>{7}, make_rope_table(8, frequencies), 1);
  rope(scaled, std::vector<int32_t>{7}, make_rope_table(8, frequencies, 2.0), 1);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(scaled[i], 2 * plain[i], 1e-6);
}

TEST(Rope, ATokenDoesNotDependOnItsBatch) {
  const RopeTable table = make_rope_table(600, rope_inverse_frequencies(64, 10000.0));
  std::vector<int32_t> positions(600);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(599 - i);
  const auto x = random_values(600 * 2 * 64, 6);
  auto all = x;
  rope(all, positions, table, 2);
  for (const size_t t : {0, 300, 599}) {
    std::vector<float> one(x.begin() + static_cast<int64_t>(t) * 128,
                           x.begin() + static_cast<int64_t>(t + 1) * 128);
    rope(one, std::span(positions).subspan(t, 1), table, 2);
    for (size_t i = 0; i < 128; ++i) ASSERT_EQ(one[i], all[t * 128 + i]);
  }
}

}  // namespace
}  // namespace ropd::kernels
