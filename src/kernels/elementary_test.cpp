#include "kernels/elementary.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace ropd::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Every finite float of the useful range would take minutes; a stride coprime to powers of two sees all
// exponents and mantissas.
std::vector<float> many_arguments() {
  std::vector<float> arguments;
  for (uint32_t bits = 0; bits < 0x42d00001u; bits += 1021) arguments.push_back(std::bit_cast<float>(bits));
  const size_t count = arguments.size();
  for (size_t i = 0; i < count; ++i) arguments.push_back(-arguments[i]);
  return arguments;
}

TEST(Exp, IsWithinOneUlp) {
  std::vector<float> x = many_arguments(), y(x.size());
  exp(y, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    if (exact > std::numeric_limits<float>::max()) continue;
    const float nearest = static_cast<float>(exact);
    const double ulp = static_cast<double>(std::nextafter(nearest, kInfinity)) - nearest;
    worst = std::max(worst, std::abs(y[i] - exact) / ulp);
  }
  EXPECT_LE(worst, 1.0);
}

TEST(Exp, HasTheSameBitsInVectorsAndAlone) {
  std::vector<float> x = many_arguments(), y(x.size());
  exp(y, x);
  for (size_t i = 0; i < x.size(); i += 7)
    ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(exp(x[i]))) << x[i];
}

// One argument beyond the range of normal results must not change its neighbours, nor they it.
TEST(Exp, HasTheSameBitsBesideExtremeArguments) {
  for (const float extreme : {-86.5f, -87.5f, -95.0f, -104.0f, -kInfinity, 86.5f, 88.7f, 100.0f, kInfinity})
    for (size_t at = 0; at < 20; ++at) {
      std::vector<float> x(20), y(20);
      for (size_t i = 0; i < x.size(); ++i) x[i] = 8.6f * static_cast<float>(i) - 86.0f;
      x[at] = extreme;
      exp(y, x);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(exp(x[i]))) << x[i];
    }
}

TEST(Exp, IsExactAtZero) {
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(exp(-0.0f), 1.0f);
}

TEST(Exp, HandlesTheEndsOfTheRange) {
  EXPECT_EQ(exp(-kInfinity), 0.0f);
  EXPECT_EQ(exp(-1e30f), 0.0f);
  EXPECT_EQ(exp(-104.5f), 0.0f);
  EXPECT_GT(exp(-103.0f), 0.0f);
  EXPECT_EQ(exp(kInfinity), kInfinity);
  EXPECT_EQ(exp(88.8f), kInfinity);
  EXPECT_LT(exp(88.7f), kInfinity);
  EXPECT_TRUE(std::isnan(exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exp(-std::numeric_limits<float>::quiet_NaN())));
}

TEST(Exp, TreatsTheTailOfAVectorLikeTheRest) {
  for (size_t count = 0; count <= 40; ++count) {
    std::vector<float> x(count, 0.5f), y(count + 1, -7.0f);
    exp(std::span(y).first(count), x);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(y[i], exp(0.5f));
    EXPECT_EQ(y[count], -7.0f);
  }
}

TEST(Log, InvertsExp) {
  EXPECT_EQ(log(1.0f), 0.0f);
  EXPECT_EQ(log(0.0f), -kInfinity);
  EXPECT_NEAR(log(exp(3.0f)), 3.0f, 3e-7f);
}

}  // namespace
}  // namespace ropd::kernels
