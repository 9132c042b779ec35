#include "stats/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/rng.h"

namespace ropd::stats {
namespace {

// Standard normal numbers (Box-Muller) for simulated experiments.
double normal(uint64_t experiment, uint32_t index) {
  const double u = 1.0 - random_uniform(7, Purpose::test, {experiment, index, 0});
  const double v = random_uniform(7, Purpose::test, {experiment, index, 1});
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
}

std::vector<BenchmarkValues> simulated(uint64_t experiment, double truth) {
  std::vector<BenchmarkValues> benchmarks = {{"a", std::vector<double>(60)}, {"b", std::vector<double>(90)}};
  uint32_t index = 0;
  for (auto& benchmark : benchmarks)
    for (double& value : benchmark.values) value = truth + 0.3 * normal(experiment, index++);
  return benchmarks;
}

TEST(Bootstrap, EstimateIsTheEqualMeanOverBenchmarks) {
  const std::vector<BenchmarkValues> benchmarks = {{"a", {1, 0, 0, 1}}, {"b", {0, 0, 0, 0, 0, 0, 0, 0}}};
  const auto result = bootstrap(benchmarks, {.draws = 1000});
  EXPECT_DOUBLE_EQ(result.benchmarks[0].estimate, 0.5);
  EXPECT_DOUBLE_EQ(result.mean.estimate, 0.25);
  EXPECT_DOUBLE_EQ(result.benchmarks[1].low, 0);
  EXPECT_DOUBLE_EQ(result.benchmarks[1].high, 0);
}

TEST(Bootstrap, IntervalOfASeedIsStored) {
  const auto result = bootstrap(simulated(0, 0.1), {.draws = 20000, .seed = 20260829});
  EXPECT_NEAR(result.mean.estimate, 0.069133549554883988, 1e-12);
  EXPECT_NEAR(result.mean.low, 0.019449424605761455, 1e-12);
  EXPECT_NEAR(result.mean.high, 0.11757718871752167, 1e-12);
}

TEST(Bootstrap, AnotherSeedGivesANearbyInterval) {
  const auto first = bootstrap(simulated(0, 0.1), {.seed = 1}),
             second = bootstrap(simulated(0, 0.1), {.seed = 2});
  EXPECT_NE(first.mean.low, second.mean.low);
  EXPECT_NEAR(first.mean.low, second.mean.low, 2e-3);
}

TEST(Bootstrap, IntervalOfABenchmarkDoesNotDependOnTheOthers) {
  const auto both = simulated(3, 0.0);
  const auto alone = bootstrap(std::span(both).subspan(1), {});
  const auto together = bootstrap(both, {});
  EXPECT_EQ(alone.benchmarks[0].low, together.benchmarks[1].low);
  EXPECT_EQ(alone.benchmarks[0].high, together.benchmarks[1].high);
}

TEST(Bootstrap, IntervalsCoverTheTruthInAbout95PercentOfExperiments) {
  int covered = 0;
  for (uint64_t experiment = 0; experiment < 1000; ++experiment) {
    const auto result = bootstrap(simulated(experiment, 0.2), {.draws = 1000, .seed = experiment + 1});
    covered += result.mean.low <= 0.2 && 0.2 <= result.mean.high;
  }
  // Binomial standard deviation 0.7%; the percentile bootstrap of 60 and 90 values is slightly narrow.
  EXPECT_GE(covered, 925);
  EXPECT_LE(covered, 970);
}

TEST(Bootstrap, PairingRemovesTheVarianceOfQuestions) {
  // A model that is better by exactly 0.1 on every question, however different the questions are.
  const std::vector<BenchmarkValues> left = {{"a", {0.9, 0.1, 0.5, 0.7}}},
                                     right = {{"a", {0.8, 0.0, 0.4, 0.6}}};
  const auto result = bootstrap(subtract(left, right), {.draws = 1000});
  EXPECT_NEAR(result.mean.low, 0.1, 1e-12);
  EXPECT_NEAR(result.mean.high, 0.1, 1e-12);
}

TEST(Bootstrap, InteractionIsTheDifferenceOfDifferences) {
  const std::vector<BenchmarkValues> a = {{"x", {0.9, 0.7}}}, b = {{"x", {0.5, 0.5}}},
                                     c = {{"x", {0.4, 0.2}}}, d = {{"x", {0.3, 0.3}}};
  const auto result = bootstrap(subtract(subtract(a, b), subtract(c, d)), {.draws = 1000});
  EXPECT_NEAR(result.mean.estimate, 0.3, 1e-12);  // (0.4 + 0.2) / 2 - (0.1 - 0.1) / 2
}

TEST(Bootstrap, QuantilesInterpolate) {
  const double values[] = {0, 10, 20, 30};
  EXPECT_DOUBLE_EQ(quantile(values, 0.0), 0);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 15);
  EXPECT_DOUBLE_EQ(quantile(values, 1.0), 30);
}

TEST(Bootstrap, TooFewDrawsAreRefused) {
  EXPECT_THROW(bootstrap(std::vector<BenchmarkValues>{{"a", {1}}}, {.draws = 10}), Error);
}

}  // namespace
}  // namespace ropd::stats
