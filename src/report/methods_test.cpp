#include "report/methods.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ropd::report {
namespace {

using ::testing::ElementsAre;

EvaluationData evaluation(const std::string& name, std::vector<double> accuracy,
                          std::optional<uint64_t> step = {}) {
  EvaluationData data{.name = name, .step = step};
  data.summary.suite = "suite";
  stats::EvaluationSummary::Benchmark benchmark{.name = "a", .question_ids = {"q"}};
  uint32_t budget = 64;
  for (const double value : accuracy) {
    data.summary.budgets.push_back(budget);
    benchmark.questions.push_back({{.accuracy = value, .length = 10 * value, .responses = 4}});
    benchmark.by_length.emplace_back();
    benchmark.pass_at_k.emplace_back();
    budget *= 2;
  }
  data.summary.benchmarks = {benchmark};
  return data;
}

RunData run(const std::string& label, std::vector<double> accuracy, size_t num_iterations) {
  RunData data;
  data.label = label;
  data.evaluations = {evaluation("final", accuracy)};
  for (size_t i = 1; i <= num_iterations; ++i) {
    IterationRecord record;
    record.iteration = i;
    record.response_length_mean = static_cast<double>(i) * accuracy[0];
    data.iterations.push_back(record);
  }
  return data;
}

TEST(Spread, IsMeanAndSampleDeviation) {
  const double values[] = {1, 3, NAN};
  const Spread both = spread(values);
  EXPECT_EQ(both.mean, 2);
  EXPECT_NEAR(both.deviation, std::sqrt(2.0), 1e-12);
  EXPECT_EQ(both.count, 2u);
  EXPECT_TRUE(std::isnan(spread({}).mean));
}

TEST(CompareMethods, AveragesRunsOfOneName) {
  const std::vector<RunData> runs = {run("a", {0.2, 0.4}, 2), run("b", {0.3, 0.3}, 2),
                                     run("a", {0.4, 0.8}, 2)};
  const Comparison comparison = compare_methods(runs);
  ASSERT_EQ(comparison.results.size(), 1u);
  const ResultSet& set = comparison.results[0];
  EXPECT_THAT(set.budgets, ElementsAre(64, 128));
  ASSERT_EQ(comparison.methods.size(), 2u);
  EXPECT_EQ(comparison.methods[0].label, "a");
  EXPECT_NEAR(set.methods[0].at({}, 128).mean, 0.6, 1e-12);
  EXPECT_NEAR(set.methods[0].at({}, 128).deviation, std::sqrt(0.08), 1e-12);
  EXPECT_NEAR(set.methods[0].at({stats::Measure::Kind::length}, 128).mean, 6, 1e-12);
  EXPECT_EQ(set.methods[0].at({}, 128).count, 2u);
}

TEST(CompareMethods, EvaluationsOnTheWayAreItsHistoryAndTheFinalOneCounts) {
  RunData one = run("a", {0.9}, 1);
  one.evaluations = {evaluation("final", {0.9}), evaluation("step-00020", {0.3}, 20),
                     evaluation("step-00060", {0.5}, 60)};
  RunData other = one;
  other.label = "b";
  other.evaluations.erase(other.evaluations.begin());
  const std::vector<RunData> runs = {one, other};
  const Comparison comparison = compare_methods(runs);
  ASSERT_EQ(comparison.results.size(), 1u);
  EXPECT_EQ(comparison.results[0].methods[0].history.size(), 2u);
  EXPECT_NEAR(comparison.results[0].methods[0].at({}, 64).mean, 0.9, 1e-12);
  EXPECT_NEAR(comparison.results[0].methods[1].at({}, 64).mean, 0.5, 1e-12);
}

TEST(CompareMethods, OtherQuestionsAndSecondEvaluationsAreSetsOfTheirOwn) {
  RunData one = run("a", {0.9}, 1);
  one.evaluations = {evaluation("cold", {0.8}), evaluation("hot", {0.6})};
  EvaluationData other = evaluation("big", {0.2});
  other.summary.benchmarks[0].name = "b";
  one.evaluations.push_back(other);
  const std::vector<RunData> runs = {one};
  const Comparison comparison = compare_methods(runs);
  ASSERT_EQ(comparison.results.size(), 3u);
  EXPECT_EQ(comparison.results[0].name, "suite, cold");
  EXPECT_EQ(comparison.results[1].name, "suite, hot");
  EXPECT_EQ(comparison.results[2].name, "suite");
  EXPECT_NEAR(comparison.results[1].methods[0].at({}, 64).mean, 0.6, 1e-12);
}

TEST(CompareMethods, RunsWithoutTrainingAreReferences) {
  const std::vector<RunData> runs = {run("teacher", {0.9}, 0), run("a", {0.5}, 1)};
  const Comparison comparison = compare_methods(runs);
  EXPECT_TRUE(comparison.methods[0].is_reference);
  EXPECT_FALSE(comparison.methods[1].is_reference);
  EXPECT_GE(comparison.methods[0].style, 6);
  EXPECT_EQ(comparison.methods[1].style, 0);
}

TEST(CompareMethods, AMissingBudgetIsAHole) {
  const std::vector<RunData> runs = {run("a", {0.5, 0.6}, 1), run("b", {0.5}, 1)};
  const Comparison comparison = compare_methods(runs);
  EXPECT_EQ(comparison.results[0].methods[1].at({}, 128).count, 0u);
  EXPECT_TRUE(std::isnan(comparison.results[0].methods[1].at({}, 128).mean));
  EXPECT_TRUE(comparison.results[0].methods[1].is_present());
}

TEST(MeanCurve, AveragesOverTheRunsThatHaveTheIteration) {
  const std::vector<RunData> runs = {run("a", {1}, 2), run("a", {3}, 1)};
  const Curve curve = mean_curve(compare_methods(runs).methods[0],
                                 [](const IterationRecord& r) { return r.response_length_mean; });
  EXPECT_THAT(curve.iteration, ElementsAre(1, 2));
  EXPECT_THAT(curve.value, ElementsAre(2, 2));
}

}  // namespace
}  // namespace ropd::report
