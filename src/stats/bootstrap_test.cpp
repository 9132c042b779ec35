#include "stats/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "stats/distributions.h"

namespace ropd::stats {
namespace {

// Standard normal numbers (Box-Muller) for simulated experiments.
double normal(uint64_t experiment, uint32_t index) {
  const double u = 1.0 - random_uniform(7, Purpose::test, {experiment, index, 0});
  const double v = random_uniform(7, Purpose::test, {experiment, index, 1});
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
}

RunValues simulated(uint64_t experiment, double truth) {
  RunValues benchmarks = {{"a", std::vector<double>(60)}, {"b", std::vector<double>(90)}};
  uint32_t index = 0;
  for (auto& benchmark : benchmarks)
    for (double& value : benchmark.values) value = truth + 0.3 * normal(experiment, index++);
  return benchmarks;
}

SuiteEffect one(const Contrast& contrast, const BootstrapConfig& config) {
  return bootstrap(std::span(&contrast, 1), config)[0];
}
SuiteEffect one(const RunValues& run, const BootstrapConfig& config) {
  return one(Contrast{{1.0, {run}}}, config);
}

TEST(Bootstrap, EstimateIsTheEqualMeanOverBenchmarks) {
  const RunValues run = {{"a", {1, 0, 0, 1}}, {"b", {0, 0, 0, 0, 0, 0, 0, 0}}};
  const auto result = one(run, {.draws = 1000});
  EXPECT_DOUBLE_EQ(result.benchmarks[0].interval.estimate, 0.5);
  EXPECT_DOUBLE_EQ(result.mean.interval.estimate, 0.25);
  EXPECT_DOUBLE_EQ(result.benchmarks[1].interval.low, 0);
  EXPECT_DOUBLE_EQ(result.benchmarks[1].interval.high, 0);
  EXPECT_EQ(result.benchmarks[1].p, 1);
}

TEST(Bootstrap, QuestionIntervalOfASeedIsStored) {
  const auto result = one(simulated(0, 0.1), {.draws = 20000, .seed = 20260829});
  EXPECT_NEAR(result.mean.questions.estimate, 0.069133549554883988, 1e-12);
  EXPECT_NEAR(result.mean.questions.low, 0.019449424605761455, 1e-12);
  EXPECT_NEAR(result.mean.questions.high, 0.11757718871752167, 1e-12);
}

TEST(Bootstrap, AnotherSeedGivesANearbyInterval) {
  const auto first = one(simulated(0, 0.1), {.seed = 1}), second = one(simulated(0, 0.1), {.seed = 2});
  EXPECT_NE(first.mean.interval.low, second.mean.interval.low);
  EXPECT_NEAR(first.mean.interval.low, second.mean.interval.low, 2e-3);
}

TEST(Bootstrap, IntervalDoesNotDependOnOtherBenchmarksOrContrasts) {
  const RunValues both = simulated(3, 0.0);
  const auto alone = one(RunValues{both[1]}, {.draws = 2000});
  const std::vector<Contrast> contrasts = {{{1.0, {simulated(4, 1.0)}}}, {{1.0, {both}}}};
  const auto together = bootstrap(contrasts, {.draws = 2000})[1];
  EXPECT_EQ(alone.benchmarks[0].questions.low, together.benchmarks[1].questions.low);
  EXPECT_EQ(alone.benchmarks[0].interval.high, together.benchmarks[1].interval.high);
}

TEST(Bootstrap, PairingRemovesTheVarianceOfQuestions) {
  // A model that is better by exactly 0.1 on every question, however different the questions are.
  const RunValues left = {{"a", {0.9, 0.1, 0.5, 0.7}}}, right = {{"a", {0.8, 0.0, 0.4, 0.6}}};
  for (const bool is_paired : {true, false}) {
    const auto result = one(difference({left}, {right}, is_paired), {.draws = 1000});
    EXPECT_NEAR(result.mean.questions.low, 0.1, 1e-12);
    EXPECT_NEAR(result.mean.interval.high, 0.1, 1e-12);
  }
}

TEST(Bootstrap, InteractionIsTheDifferenceOfDifferences) {
  const RunValues a = {{"x", {0.9, 0.7}}}, b = {{"x", {0.5, 0.5}}}, c = {{"x", {0.4, 0.2}}},
                  d = {{"x", {0.3, 0.3}}};
  for (const bool is_paired : {true, false}) {
    const auto result = one(interaction({a}, {b}, {c}, {d}, is_paired), {.draws = 1000});
    EXPECT_NEAR(result.mean.interval.estimate, 0.3, 1e-12);  // (0.4 + 0.2) / 2 - (0.1 - 0.1) / 2
  }
}

// Two questions, three runs whose means differ by a constant: x = question + run, no residual.
//   question means 0, 0.4: variance 0.08, / 2 = 0.04, 1 degree
//   run means 0.1, 0.2, 0.3: variance 0.01, / 3 = 0.00333, 2 degrees
TEST(Bootstrap, VarianceComponentsByHand) {
  std::vector<RunValues> runs;
  for (const double run : {-0.1, 0.0, 0.1}) runs.push_back({{"x", {0.0 + run, 0.4 + run}}});
  const auto effect = one(Contrast{{1.0, runs}}, {.draws = 1000}).mean;
  EXPECT_TRUE(effect.includes_runs);
  EXPECT_NEAR(effect.interval.estimate, 0.2, 1e-12);
  EXPECT_NEAR(effect.standard_error * effect.standard_error, 0.04 + 0.01 / 3, 1e-12);
  const double expected = std::pow(0.04 + 0.01 / 3, 2) / (0.04 * 0.04 / 1 + std::pow(0.01 / 3, 2) / 2);
  EXPECT_NEAR(effect.degrees_of_freedom, expected, 1e-9);
  EXPECT_NEAR(effect.p, two_sided_p(0.2 / effect.standard_error, expected), 1e-12);
}

// The residual is in both parts and counts once: run means are equal here, so the runs add nothing.
TEST(Bootstrap, RunsThatDifferByNoMoreThanTheResidualAddNothing) {
  const std::vector<RunValues> runs = {
      {{"x", {0.1, 0.3, 0.5}}}, {{"x", {0.3, 0.5, 0.1}}}, {{"x", {0.5, 0.1, 0.3}}}};
  const auto effect = one(Contrast{{1.0, runs}}, {.draws = 1000}).mean;
  EXPECT_NEAR(effect.standard_error, 0, 1e-12);
}

TEST(Bootstrap, IndependentRunsAddTheirVariancesAndPairedOnesTheirDifference) {
  // Three orders move both methods together: paired, the difference is exact; unpaired, it is not.
  std::vector<RunValues> left, right;
  for (const double order : {-0.1, 0.0, 0.1}) {
    left.push_back({{"x", {0.5 + order, 0.7 + order}}});
    right.push_back({{"x", {0.4 + order, 0.6 + order}}});
  }
  const auto paired = one(difference(left, right, true), {.draws = 1000}).mean;
  const auto unpaired = one(difference(left, right, false), {.draws = 1000}).mean;
  EXPECT_NEAR(paired.standard_error, 0, 1e-9);
  EXPECT_NEAR(unpaired.standard_error, std::sqrt(2 * 0.01 / 3), 1e-9);
  EXPECT_NEAR(unpaired.questions.high - unpaired.questions.low, 0, 1e-9);  // these very runs: no doubt
  EXPECT_GT(unpaired.interval.high - unpaired.interval.low, 0.3);
}

TEST(Bootstrap, OneRunSaysThatOtherRunsAreNotInTheInterval) {
  EXPECT_FALSE(one(simulated(1, 0.2), {.draws = 1000}).mean.includes_runs);
}

TEST(Bootstrap, RunEffectsAreTheContrastOfEachOrder) {
  const std::vector<RunValues> left = {{{"x", {0.5, 0.7}}}, {{"x", {0.9, 0.9}}}},
                               right = {{{"x", {0.4, 0.6}}}, {{"x", {0.5, 0.5}}}};
  const auto effects = run_effects(difference(left, right, true));
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_NEAR(effects[0], 0.1, 1e-12);
  EXPECT_NEAR(effects[1], 0.4, 1e-12);
  EXPECT_TRUE(run_effects(difference(left, right, false)).empty());
}

// ---- coverage ----

struct Experiment {
  size_t runs = 3;
  double run_deviation = 0;
  bool is_binary = false;  // four samples a question, right or wrong; otherwise normal values
};

// Differences of known mean: each question has its own effect, each run its own, and their meeting a
// residual.
Contrast simulate(const Experiment& setting, uint64_t experiment, double truth) {
  RunGroup group;
  uint32_t index = 0;
  std::vector<std::vector<double>> questions;
  for (const size_t count : {30u, 50u}) {
    auto& values = questions.emplace_back(count);
    for (double& value : values) value = normal(experiment, index++);
  }
  for (size_t r = 0; r < setting.runs; ++r) {
    const double run = setting.run_deviation * normal(experiment, index++);
    RunValues values = {{"a", {}}, {"b", {}}};
    for (size_t b = 0; b < 2; ++b)
      for (const double question : questions[b]) {
        if (!setting.is_binary) {
          values[b].values.push_back(truth + run + 0.3 * question + 0.2 * normal(experiment, index++));
          continue;
        }
        // Two methods whose chance of a right answer is the same up to the run and the question.
        const double effect = truth + run + 0.1 * std::tanh(question);
        int wins = 0;
        for (uint32_t sample = 0; sample < 4; ++sample, ++index)
          wins += int(random_uniform(8, Purpose::test, {experiment, index, 0}) < 0.4 + effect / 2) -
                  int(random_uniform(8, Purpose::test, {experiment, index, 1}) < 0.4 - effect / 2);
        values[b].values.push_back(wins / 4.0);
      }
    group.runs.push_back(std::move(values));
  }
  return {group};
}

// A quick look in every test run: 500 experiments leave a standard deviation of one point, and percentiles of
// 400 draws are half a point narrow. `ROPD_COVERAGE=1 build/stats_test --gtest_filter='BootstrapCoverage*'`
// takes enough of both for the figures in docs/log.md (2 min of processor time).
const bool kIsThorough = std::getenv("ROPD_COVERAGE") != nullptr;
const uint32_t kDraws = kIsThorough ? 4000 : 400;
const int kExperiments = kIsThorough ? 2000 : 500;
const double kLeast = kIsThorough ? 93 : 92, kMost = kIsThorough ? 97.5 : 98.5;

double coverage_of(const Experiment& setting, int num_experiments) {
  std::atomic<int> covered = 0;
  // Whole experiments side by side: the threads inside would mostly wait.
  parallel_tasks(static_cast<size_t>(num_experiments), [&](size_t i, size_t) {
    const auto effect = one(simulate(setting, i, 0.05), {.draws = kDraws, .seed = i + 1}).mean;
    covered += effect.interval.low <= 0.05 && 0.05 <= effect.interval.high;
  });
  if (kIsThorough)
    std::printf("%zu runs, run deviation %g, %s: covered %.1f %%\n", setting.runs, setting.run_deviation,
                setting.is_binary ? "binary" : "normal", 100.0 * covered / num_experiments);
  return 100.0 * covered / num_experiments;
}

TEST(BootstrapCoverage, OneRunWithoutRunEffects) {
  for (const bool is_binary : {false, true}) {
    const double covered = coverage_of({.runs = 1, .run_deviation = 0, .is_binary = is_binary}, kExperiments);
    EXPECT_GE(covered, kLeast);
    EXPECT_LE(covered, kMost);
  }
}

TEST(BootstrapCoverage, ThreeRunsWhateverTheRunsDiffer) {
  for (const bool is_binary : {false, true})
    for (const double deviation : {0.0, 0.02, 0.05}) {
      const double covered =
          coverage_of({.runs = 3, .run_deviation = deviation, .is_binary = is_binary}, kExperiments);
      EXPECT_GE(covered, kLeast) << is_binary << " " << deviation;
      EXPECT_LE(covered, kMost) << is_binary << " " << deviation;
    }
}

TEST(BootstrapCoverage, FiveRuns) {
  const double covered = coverage_of({.runs = 5, .run_deviation = 0.03}, kExperiments);
  EXPECT_GE(covered, kLeast);
  EXPECT_LE(covered, kMost);
}

TEST(Holm, AdjustsByHand) {
  // Sorted 0.01, 0.02, 0.03 times 3, 2, 1, then never falling: 0.03, 0.04, 0.04.
  const double p[] = {0.02, 0.03, 0.01};
  const auto adjusted = holm(p);
  EXPECT_NEAR(adjusted[2], 0.03, 1e-15);
  EXPECT_NEAR(adjusted[0], 0.04, 1e-15);
  EXPECT_NEAR(adjusted[1], 0.04, 1e-15);
  EXPECT_EQ(holm(std::vector<double>{0.8, 0.9})[0], 1.0);
}

TEST(Bootstrap, QuantilesInterpolate) {
  const double values[] = {0, 10, 20, 30};
  EXPECT_DOUBLE_EQ(quantile(values, 0.0), 0);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 15);
  EXPECT_DOUBLE_EQ(quantile(values, 1.0), 30);
}

TEST(Bootstrap, TooFewDrawsAreRefused) { EXPECT_THROW(one(RunValues{{"a", {1}}}, {.draws = 10}), Error); }

}  // namespace
}  // namespace ropd::stats
