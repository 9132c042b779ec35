#include "stats/distributions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ropd::stats {
namespace {

TEST(Distributions, NormalQuantilesOfTheTables) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.05), -1.644853626951473, 1e-12);
  EXPECT_EQ(normal_quantile(0.5), 0);
}

TEST(Distributions, StudentQuantilesOfTheTables) {
  EXPECT_NEAR(t_quantile(0.975, 1), std::tan(0.475 * 3.14159265358979323846), 1e-9);    // Cauchy: 12.706
  EXPECT_NEAR(t_quantile(0.975, 2), 0.95 * std::sqrt(2 / (4 * 0.975 * 0.025)), 1e-10);  // closed form: 4.3027
  EXPECT_NEAR(t_quantile(0.975, 10), 2.228138851964939, 1e-10);
  EXPECT_NEAR(t_quantile(0.025, 2), -t_quantile(0.975, 2), 1e-10);
  EXPECT_NEAR(t_quantile(0.975, 1e9), 1.959963984540054, 1e-9);
}

TEST(Distributions, TwoSidedProbabilityInvertsTheQuantile) {
  for (const double degrees : {1.0, 2.5, 30.0, 400.0})
    EXPECT_NEAR(two_sided_p(t_quantile(0.975, degrees), degrees), 0.05, 1e-12) << degrees;
  EXPECT_NEAR(two_sided_p(0, 5), 1, 1e-15);
}

}  // namespace
}  // namespace ropd::stats
