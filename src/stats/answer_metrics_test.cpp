#include "stats/answer_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ropd::stats {
namespace {

Outcome correct(uint32_t answer = 1, uint32_t tokens = 100) { return {true, true, false, tokens, answer}; }
Outcome wrong(uint32_t answer = 2, uint32_t tokens = 200) { return {false, true, false, tokens, answer}; }
Outcome cut() { return {false, false, true, 1000, 0}; }

TEST(AnswerMetrics, HandComputedBenchmark) {
  // Question 1: 3 of 4 correct; question 2: none, one cut; question 3: 1 of 4, boxed at the cap.
  Outcome late = correct(1, 1000);
  late.is_at_cap = true;
  const std::vector<QuestionOutcomes> questions = {{correct(), correct(), wrong(), correct()},
                                                   {wrong(), wrong(), cut(), wrong(3)},
                                                   {late, wrong(), wrong(), cut()}};
  const AnswerMetrics metrics = benchmark_metrics(questions);
  EXPECT_DOUBLE_EQ(metrics.accuracy, (0.75 + 0.0 + 0.25) / 3);
  EXPECT_DOUBLE_EQ(metrics.pass_at_n, 2.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.majority, 1.0 / 3);
  EXPECT_NEAR(metrics.extraction, 10.0 / 12, 1e-12);
  EXPECT_NEAR(metrics.at_cap, 3.0 / 12, 1e-12);
  EXPECT_NEAR(metrics.mean_tokens, (500 + 1600 + 2400) / 12.0, 1e-9);
  EXPECT_NEAR(metrics.extracted_finished, 9.0 / 12, 1e-12);
  EXPECT_NEAR(metrics.extracted_at_cap, 1.0 / 12, 1e-12);
  EXPECT_NEAR(metrics.missing_finished, 0, 1e-12);
  EXPECT_NEAR(metrics.missing_at_cap, 2.0 / 12, 1e-12);
}

TEST(AnswerMetrics, FourCategoriesAddToOne) {
  const std::vector<QuestionOutcomes> questions = {
      {correct(), cut(), wrong()}, {cut()}, {{false, false, false, 5, 0}, correct()}};
  const AnswerMetrics m = benchmark_metrics(questions);
  EXPECT_NEAR(m.extracted_finished + m.extracted_at_cap + m.missing_finished + m.missing_at_cap, 1.0, 1e-12);
}

TEST(AnswerMetrics, QuestionsWeighEquallyWhateverTheirNumberOfResponses) {
  EXPECT_DOUBLE_EQ(
      benchmark_metrics(std::vector<QuestionOutcomes>{{correct()}, {wrong(), wrong(), wrong()}}).accuracy,
      0.5);
}

TEST(AnswerMetrics, MajorityTieGoesToTheFirstAnswer) {
  EXPECT_TRUE(majority_is_correct({correct(7), wrong(3), wrong(3), correct(7)}));
  EXPECT_FALSE(majority_is_correct({wrong(9), correct(1), correct(1), wrong(9)}));
}

TEST(AnswerMetrics, ResponsesWithoutAnswerDoNotVote) {
  EXPECT_TRUE(majority_is_correct({cut(), cut(), cut(), correct()}));
  EXPECT_FALSE(majority_is_correct({cut(), cut()}));
}

TEST(AnswerMetrics, UnbiasedPassAtK) {
  EXPECT_DOUBLE_EQ(unbiased_pass_at_k(4, 1, 1), 0.25);
  EXPECT_NEAR(unbiased_pass_at_k(4, 1, 2), 0.5, 1e-15);              // 1 - C(3,2)/C(4,2) = 1 - 3/6
  EXPECT_NEAR(unbiased_pass_at_k(10, 3, 4), 1 - 35.0 / 210, 1e-12);  // 1 - C(7,4)/C(10,4)
  EXPECT_DOUBLE_EQ(unbiased_pass_at_k(4, 0, 4), 0);
  EXPECT_DOUBLE_EQ(unbiased_pass_at_k(4, 1, 4), 1);
}

TEST(AnswerMetrics, PassAtKEqualsTheMeanOverAllSubsets) {
  // Exhaustive: 6 responses, 2 correct, subsets of size 3.
  int hits = 0, subsets = 0;
  for (int mask = 0; mask < 64; ++mask)
    if (__builtin_popcount(unsigned(mask)) == 3) {
      ++subsets;
      hits += (mask & 3) != 0;
    }
  EXPECT_NEAR(unbiased_pass_at_k(6, 2, 3), double(hits) / subsets, 1e-15);
}

TEST(AnswerMetrics, PassAtKCurveEndsAtN) {
  const std::vector<QuestionOutcomes> questions = {{correct(), wrong(), wrong(), wrong(), wrong(), correct()},
                                                   {wrong(), wrong(), wrong(), wrong(), wrong(), wrong()}};
  const auto curve = pass_at_k_curve(questions);
  ASSERT_EQ(curve.size(), 4u);  // 1, 2, 4, 6
  EXPECT_EQ(curve[3].k, 6u);
  EXPECT_DOUBLE_EQ(curve[3].value, benchmark_metrics(questions).pass_at_n);
  EXPECT_NEAR(curve[0].value, benchmark_metrics(questions).accuracy, 1e-15);
}

TEST(AnswerMetrics, MeanOverBenchmarksHasEqualWeights) {
  const AnswerMetrics metrics[] = {{.accuracy = 0.2, .mean_tokens = 100},
                                   {.accuracy = 0.6, .mean_tokens = 300}};
  EXPECT_DOUBLE_EQ(mean_over_benchmarks(metrics).accuracy, 0.4);
  EXPECT_DOUBLE_EQ(mean_over_benchmarks(metrics).mean_tokens, 200);
}

TEST(AnswerMetrics, LengthBinsDouble) {
  const std::vector<QuestionOutcomes> questions = {
      {correct(1, 0), wrong(1, 511), correct(1, 512), wrong(1, 40000)}};
  const auto bins = accuracy_by_length(questions);
  ASSERT_EQ(bins.size(), 3u);
  EXPECT_EQ(bins[0].num_responses, 2u);
  EXPECT_DOUBLE_EQ(bins[0].accuracy, 0.5);
  EXPECT_EQ(bins[1].begin_tokens, 512u);
  EXPECT_EQ(bins[1].end_tokens, 1024u);
  EXPECT_EQ(bins[2].begin_tokens, 32768u);
}

TEST(AnswerMetrics, SampleDeviationDividesByOneLess) {
  const double values[] = {26.0, 27.0, 28.0};
  EXPECT_DOUBLE_EQ(mean_and_deviation(values).mean, 27.0);
  EXPECT_DOUBLE_EQ(mean_and_deviation(values).deviation, 1.0);
  EXPECT_DOUBLE_EQ(mean_and_deviation(std::span(values, 1)).deviation, 0.0);
}

}  // namespace
}  // namespace ropd::stats
