#include "eval/summary.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "stats/evaluation.h"
#include "support/test_data.h"

namespace ropd::eval {
namespace {

using ::testing::HasSubstr;

stats::Outcome outcome(bool is_correct, uint32_t tokens) {
  return {is_correct, true, tokens >= 8, tokens, is_correct ? 0u : 1u};
}

Evaluation small_evaluation() {
  Evaluation evaluation{.suite = "s", .suite_fingerprint = "f", .budgets = {8, 16}, .num_responses = 4};
  GradedBenchmark a{.name = "a", .questions_sha256 = "hash", .samples = 2, .question_ids = {"q1", "q2"}};
  a.outcomes = {{{outcome(false, 8), outcome(false, 8)}, {outcome(true, 3), outcome(false, 8)}},
                {{outcome(true, 9), outcome(false, 9)}, {outcome(true, 3), outcome(true, 9)}}};
  evaluation.benchmarks = {a};
  a.name = "b";
  evaluation.benchmarks.push_back(a);
  return evaluation;
}

// What is written here and read in stats.
TEST(Summary, ReadsBackWhatItWrote) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "summary.json",
                        summary_json(small_evaluation(), {{"model", "m"}}).dump());
  const auto summary = stats::read_summary(directory.path());
  EXPECT_EQ(summary.budgets, (std::vector<uint32_t>{8, 16}));
  ASSERT_EQ(summary.benchmarks.size(), 2u);
  const auto values = [&](const char* measure, uint32_t budget) {
    return summary.values(stats::parse_measure(measure), budget)[0].values;
  };
  EXPECT_EQ(values("accuracy", 8), (std::vector<double>{0.0, 0.5}));
  EXPECT_EQ(values("accuracy", 16), (std::vector<double>{0.5, 1.0}));
  EXPECT_EQ(values("extracted_at_cap", 8), (std::vector<double>{1.0, 0.5}));
  EXPECT_EQ(values("length", 16), (std::vector<double>{9.0, 6.0}));
  EXPECT_EQ(values("pass@2", 16), (std::vector<double>{1.0, 1.0}));
}

TEST(Summary, HoldsMeansCurvesAndQuestions) {
  const Json json = summary_json(small_evaluation(), {});
  EXPECT_DOUBLE_EQ(json["budgets"][0]["accuracy"], 0.25);
  EXPECT_DOUBLE_EQ(json["budgets"][1]["accuracy"], 0.75);
  EXPECT_DOUBLE_EQ(json["budgets"][1]["pass_at_n"], 1.0);
  EXPECT_DOUBLE_EQ(json["budgets"][0]["categories"]["extracted_at_cap"], 0.75);
  const Json& line = json["benchmarks"][0]["budgets"][1];
  EXPECT_EQ(line["pass_at_k"].size(), 2u);
  EXPECT_EQ(line["accuracy_by_length"][0]["responses"], 4);
  EXPECT_EQ(line["questions"]["accuracy"], Json({0.5, 1.0}));
  EXPECT_EQ(line["questions"]["responses"], Json({2, 2}));
}

TEST(Summary, TablesNameEveryBenchmarkAndTheMean) {
  const auto tables = summary_tables(small_evaluation());
  ASSERT_EQ(tables.size(), 2u);
  const std::string markdown = stats::to_markdown(tables[1]);
  EXPECT_THAT(markdown, HasSubstr("Budget 16 tokens"));
  EXPECT_THAT(markdown, HasSubstr("| a | 2 x 2 | 75.00 | 100.00 | 100.00 | 100.00 | 8 | 75.00 |"));
  EXPECT_THAT(markdown, HasSubstr("| mean |"));
}

}  // namespace
}  // namespace ropd::eval
