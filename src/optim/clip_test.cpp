#include "optim/clip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/threads.h"

namespace ropd::optim {
namespace {

using testing::HasSubstr;

TEST(GlobalNorm, OfThreeAndFourIsFive) {
  const std::vector<float> gradient = {3, 0, -4};
  EXPECT_EQ(global_norm(gradient), 5.0);
}

TEST(GlobalNorm, DoesNotOverflowForLargeFiniteValues) {
  const std::vector<float> gradient = {3e38f, 3e38f};
  EXPECT_NEAR(global_norm(gradient) / (std::sqrt(2.0) * 3e38), 1.0, 1e-6);
}

TEST(GlobalNorm, IsNotFiniteWhenOneValueIsNot) {
  std::vector<float> gradient(100000, 1e-3f);
  gradient[99999] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(global_norm(gradient)));
  gradient[99999] = std::nanf("");
  EXPECT_FALSE(std::isfinite(global_norm(gradient)));
}

TEST(GlobalNorm, HasTheSameBitsForAnyNumberOfThreads) {
  std::vector<float> gradient(300007);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i) * 0.37f);
  const size_t threads = num_threads();
  set_num_threads(1);
  const double alone = global_norm(gradient);
  set_num_threads(3);
  EXPECT_EQ(global_norm(gradient), alone);
  set_num_threads(threads);
}

TEST(ClipCoefficient, LeavesAGradientWithinTheLimitAlone) {
  EXPECT_EQ(clip_coefficient(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_coefficient(1.0, 1.0), 1.0);
  EXPECT_EQ(clip_coefficient(0.0, 1.0), 1.0);
}

TEST(ClipCoefficient, BringsALargerNormToTheLimit) { EXPECT_EQ(clip_coefficient(4.0, 1.0), 0.25); }

TEST(ClipCoefficient, ZeroSwitchesClippingOff) { EXPECT_EQ(clip_coefficient(1e9, 0.0), 1.0); }

TEST(FindNonFinite, IsEmptyForAFiniteGradient) {
  EXPECT_FALSE(find_non_finite(std::vector<float>{1, -2, 3}, {}).has_value());
}

TEST(FindNonFinite, NamesTheTensorIndexAndCount) {
  std::vector<float> gradient(10, 1.0f);
  gradient[6] = std::nanf("");
  gradient[8] = std::numeric_limits<float>::infinity();
  const std::vector<TensorRange> tensors = {{"a", 0, 4}, {"b", 4, 3}, {"c", 7, 3}};
  const auto found = find_non_finite(gradient, tensors);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->tensor, "b");
  EXPECT_EQ(found->index, 2u);
  EXPECT_EQ(found->count, 2u);
  EXPECT_THAT(describe(*found, gradient.size()), HasSubstr("b[2] is nan (2 of 10"));
}

}  // namespace
}  // namespace ropd::optim
