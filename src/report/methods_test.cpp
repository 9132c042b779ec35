#include "report/methods.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ropd::report {
namespace {

using ::testing::ElementsAre;

RunData run(const std::string& label, std::vector<double> accuracy, size_t num_iterations) {
  RunData data;
  data.label = label;
  data.evaluation.emplace();
  int64_t budget = 64;
  for (const double value : accuracy) {
    data.evaluation->budgets.push_back({.budget = budget, .accuracy = value, .length = 10.0 * value});
    budget *= 2;
  }
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
  EXPECT_THAT(comparison.budgets, ElementsAre(64, 128));
  ASSERT_EQ(comparison.methods.size(), 2u);
  EXPECT_EQ(comparison.methods[0].label, "a");
  EXPECT_NEAR(comparison.methods[0].accuracy[1].mean, 0.6, 1e-12);
  EXPECT_NEAR(comparison.methods[0].length.mean, 6, 1e-12);
  EXPECT_EQ(comparison.methods[0].accuracy[1].count, 2u);
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
  EXPECT_EQ(comparison.methods[1].accuracy[1].count, 0u);
  EXPECT_TRUE(std::isnan(comparison.methods[1].accuracy[1].mean));
  EXPECT_TRUE(comparison.methods[1].has_evaluation);
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
