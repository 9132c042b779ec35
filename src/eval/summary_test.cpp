#include "eval/summary.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::eval {
namespace {

using ::testing::HasSubstr;

stats::Outcome outcome(bool is_correct, uint32_t tokens) {
  return {is_correct, true, tokens >= 8, tokens, is_correct ? 0u : 1u};
}

Evaluation small_evaluation() {
  Evaluation evaluation{.suite = "s", .suite_fingerprint = "f", .budgets = {8, 16}, .num_responses = 4};
  ScoredBenchmark a{.name = "a", .questions_sha256 = "hash", .samples = 2, .question_ids = {"q1", "q2"}};
  a.outcomes = {{{outcome(false, 8), outcome(false, 8)}, {outcome(true, 3), outcome(false, 8)}},
                {{outcome(true, 9), outcome(false, 9)}, {outcome(true, 3), outcome(true, 9)}}};
  evaluation.benchmarks = {a};
  a.name = "b";
  evaluation.benchmarks.push_back(a);
  return evaluation;
}

class SummaryFiles : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  EvaluationSummary saved(const Json& json) {
    write_file_atomically(directory_ / "summary.json", json.dump());
    return read_summary(directory_.path());
  }
  std::string error(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& failure) {
      return failure.what();
    }
    return "";
  }
};

TEST_F(SummaryFiles, ReadsBackWhatItWrote) {
  const auto summary = saved(summary_json(small_evaluation(), {{"model", "m"}}));
  EXPECT_EQ(summary.budgets, (std::vector<uint32_t>{8, 16}));
  ASSERT_EQ(summary.benchmarks.size(), 2u);
  EXPECT_EQ(summary.at_budget(8)[0].values, (std::vector<double>{0.0, 0.5}));
  EXPECT_EQ(summary.at_budget(16)[1].values, (std::vector<double>{0.5, 1.0}));
  EXPECT_THAT(error([&] { summary.at_budget(4); }), HasSubstr("not scored at 4 tokens, only at 8, 16"));
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
  const std::string markdown = markdown_table(small_evaluation());
  EXPECT_THAT(markdown, HasSubstr("Budget 16 tokens"));
  EXPECT_THAT(markdown, HasSubstr("| a | 2 x 2 | 75.00 | 100.00 | 100.00 | 100.00 | 8 | 75.00 |"));
  EXPECT_THAT(markdown, HasSubstr("| mean |"));
  EXPECT_THAT(console_table(small_evaluation()), HasSubstr("75.00"));
}

TEST_F(SummaryFiles, SameQuestionsAreAccepted) {
  const auto summary = saved(summary_json(small_evaluation(), {}));
  EXPECT_EQ(error([&] { check_same_questions(summary, summary); }), "");
}

TEST_F(SummaryFiles, DifferentQuestionsAreNamed) {
  const auto left = saved(summary_json(small_evaluation(), {}));
  auto right = left;
  right.benchmarks[1].question_ids[1] = "q9";
  EXPECT_THAT(
      error([&] { check_same_questions(left, right); }),
      HasSubstr("did not see the same questions of b: only in the first: q2; only in the second: q9"));
  right = left;
  right.benchmarks.pop_back();
  EXPECT_THAT(error([&] { check_same_questions(left, right); }),
              HasSubstr("different benchmarks: only in the first: b"));
  right = left;
  right.benchmarks[0].questions_sha256 = "other";
  EXPECT_THAT(error([&] { check_same_questions(left, right); }), HasSubstr("same ids but other texts"));
}

TEST_F(SummaryFiles, BrokenSummariesAreRefused) {
  EXPECT_THAT(error([&] { read_summary(directory_ / "absent"); }), HasSubstr("no such file"));
  Json json = summary_json(small_evaluation(), {});
  json["format"] = 2;
  EXPECT_THAT(error([&] { saved(json); }), HasSubstr("format 2, expected 1"));
  json = summary_json(small_evaluation(), {});
  json["benchmarks"][0]["budgets"][0]["questions"]["accuracy"].erase(0);
  EXPECT_THAT(error([&] { saved(json); }), HasSubstr("1 accuracies for 2 questions"));
  EXPECT_THAT(error([&] { saved(Json::array()); }), HasSubstr("no 'format' in it"));
}

}  // namespace
}  // namespace ropd::eval
