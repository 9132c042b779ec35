#include "eval/outcomes.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/threads.h"
#include "support/byte_tokenizer.h"
#include "support/test_data.h"

namespace ropd::eval {
namespace {

using ::testing::HasSubstr;

using test::byte_tokenizer;

GradingConfig budgets(std::vector<uint32_t> tokens) { return {.budgets = std::move(tokens)}; }

TEST(Scoring, CutsAtEveryBudget) {
  //                             0123456789012345678
  const std::string response = "so \\boxed{1}, no \\boxed{2}.";  // 27 bytes; boxes end at 12 and 26
  const auto outcomes = grade_question({response}, "2", byte_tokenizer(), budgets({5, 12, 24, 26, 27, 100}));
  const auto found = [&](size_t b) { return outcomes[b][0].is_extracted; };
  EXPECT_FALSE(found(0));                               // "so \bo"
  EXPECT_TRUE(found(1) && !outcomes[1][0].is_correct);  // the first box, wrong
  EXPECT_FALSE(found(2));  // the last box is cut: no answer, as the reference says
  EXPECT_TRUE(outcomes[3][0].is_correct);
  EXPECT_TRUE(outcomes[4][0].is_correct);
  EXPECT_TRUE(outcomes[5][0].is_correct);
  const std::vector<uint32_t> lengths = {5, 12, 24, 26, 27, 27};
  const std::vector<bool> at_cap = {true, true, true, true, true, false};
  for (size_t b = 0; b < lengths.size(); ++b) {
    EXPECT_EQ(outcomes[b][0].num_tokens, lengths[b]);
    EXPECT_EQ(outcomes[b][0].is_at_cap, at_cap[b]) << b;
  }
}

TEST(Scoring, CutInsideACharacterKeepsTheRest) {
  const std::string response = "\\boxed{7} π";  // 12 bytes, the last character has two
  const auto outcomes = grade_question({response}, "7", byte_tokenizer(), budgets({11, 12}));
  EXPECT_TRUE(outcomes[0][0].is_correct);
  EXPECT_EQ(outcomes[0][0].num_tokens, 11u);
  EXPECT_TRUE(outcomes[1][0].is_at_cap);
}

TEST(Scoring, EqualAnswersVoteTogether) {
  const auto outcomes =
      grade_question({"\\boxed{1/2}", "\\boxed{3}", "\\boxed{0.5}", "\\boxed{\\frac{1}{2}}", "none"},
                     "\\frac12", byte_tokenizer(), budgets({1000}))[0];
  EXPECT_EQ(outcomes[0].answer, outcomes[2].answer);
  EXPECT_EQ(outcomes[0].answer, outcomes[3].answer);
  EXPECT_NE(outcomes[0].answer, outcomes[1].answer);
  EXPECT_FALSE(outcomes[4].is_extracted);
  EXPECT_TRUE(stats::majority_is_correct(outcomes));
}

TEST(Scoring, LengthIsThatOfTheTextAndNotOfTheSampledIds) {
  const auto outcomes = grade_question({"abc"}, "1", byte_tokenizer(), budgets({3, 4}));
  EXPECT_TRUE(outcomes[0][0].is_at_cap);
  EXPECT_FALSE(outcomes[1][0].is_at_cap);
}

TEST(Scoring, RealTokenizerCutEqualsDirectTokenization) {
  ROPD_NEEDS_DATA();
  const auto tokenizer = text::Tokenizer::load(test::data_directory() / "tokenizers/qwen3");
  const std::string response =
      "Let us see: 方程 has roots π/2 and 😀. So \\boxed{\\frac{1}{2}} or rather \\boxed{42} — done.";
  const auto ids = tokenizer.encode(response);
  for (uint32_t budget = 1; budget <= ids.size() + 1; ++budget) {
    const auto outcome = grade_question({response}, "42", tokenizer, budgets({budget}))[0][0];
    const auto kept = std::span(ids).first(std::min<size_t>(budget, ids.size()));
    const auto verdict = grading::grade(tokenizer.decode(kept), "42");
    EXPECT_EQ(outcome.is_correct, verdict.correct) << budget;
    EXPECT_EQ(outcome.is_extracted, verdict.answer_found) << budget;
    EXPECT_EQ(outcome.num_tokens, kept.size());
  }
}

class ScoringFiles : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  Suite suite_{.name = "s"};
  void SetUp() override {
    suite_.benchmarks.push_back({.name = "a",
                                 .samples = 2,
                                 .questions = {{"q1", {{"user", "x"}}, "1"}, {"q2", {{"user", "y"}}, "2"}}});
    suite_.benchmarks.push_back({.name = "b", .samples = 1, .questions = {{"q1", {{"user", "z"}}, "3"}}});
  }
  std::string line(const std::string& benchmark, const std::string& id, uint32_t sample,
                   const std::string& text) {
    return response_line(
               {.query_id = id, .sample = sample, .prompt_ids = {1}, .response_ids = {2}, .text = text},
               benchmark) +
           "\n";
  }
  std::string complete() {
    return line("a", "q1", 0, "\\boxed{1}") + line("a", "q1", 1, "\\boxed{2}") +
           line("a", "q2", 0, "\\boxed{2}") + line("a", "q2", 1, "\\boxed{2}") +
           line("b", "q1", 0, "no idea");
  }
  Evaluation score(const std::string& content, bool allows_missing = false) {
    write_file_atomically(directory_ / "r.jsonl", content);
    const ResponseFile file(directory_ / "r.jsonl", suite_);
    return grade_responses(suite_, file, byte_tokenizer(),
                           {.budgets = {4, 100}, .allows_missing = allows_missing});
  }
};

TEST_F(ScoringFiles, GivesOutcomesByBudgetAndQuestion) {
  const auto evaluation = score(complete());
  ASSERT_EQ(evaluation.benchmarks.size(), 2u);
  const auto& a = evaluation.benchmarks[0];
  EXPECT_EQ(a.question_ids, (std::vector<std::string>{"q1", "q2"}));
  EXPECT_DOUBLE_EQ(stats::benchmark_metrics(a.outcomes[1]).accuracy, 0.75);
  EXPECT_DOUBLE_EQ(stats::benchmark_metrics(a.outcomes[0]).at_cap, 1.0);
  EXPECT_DOUBLE_EQ(stats::benchmark_metrics(evaluation.benchmarks[1].outcomes[1]).extraction, 0.0);
}

TEST_F(ScoringFiles, MissingResponsesAreRefusedOrCounted) {
  const std::string partial = line("a", "q2", 1, "\\boxed{2}");
  try {
    score(partial);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("4 of 5 responses are missing, the first is sample 0 of a question 'q1'"));
  }
  const auto evaluation = score(partial, true);
  EXPECT_EQ(evaluation.num_missing, 4u);
  ASSERT_EQ(evaluation.benchmarks.size(), 1u);
  EXPECT_EQ(evaluation.benchmarks[0].question_ids, (std::vector<std::string>{"q2"}));
}

TEST_F(ScoringFiles, NumberOfThreadsDoesNotMatter) {
  const size_t before = num_threads();
  set_num_threads(1);
  const auto one = score(complete());
  set_num_threads(2);
  const auto two = score(complete());
  set_num_threads(before);
  for (size_t b = 0; b < 2; ++b)
    for (size_t q = 0; q < one.benchmarks[b].question_ids.size(); ++q)
      for (size_t s = 0; s < one.benchmarks[b].outcomes[1][q].size(); ++s) {
        EXPECT_EQ(one.benchmarks[b].outcomes[1][q][s].is_correct,
                  two.benchmarks[b].outcomes[1][q][s].is_correct);
        EXPECT_EQ(one.benchmarks[b].outcomes[1][q][s].answer, two.benchmarks[b].outcomes[1][q][s].answer);
      }
}

TEST_F(ScoringFiles, BrokenLineStopsScoringWithItsPlace) {
  std::string content = complete();
  const size_t at = content.rfind("\"text\"");
  content.replace(at, 6, "\"tixt\"");
  EXPECT_THROW(score(content), Error);
}

TEST(Budgets, AreParsedAndSorted) {
  EXPECT_EQ(parse_budgets("8K,4096,8192,32k"), (std::vector<uint32_t>{4096, 8192, 32768}));
  EXPECT_EQ(parse_budgets("16384K"), std::vector<uint32_t>{1 << 24});
  for (const char* wrong : {"", "4K,", "x", "0", "-1", "4.5", "4KK", "4194308K", "16385K", "16777217"})
    EXPECT_THROW(parse_budgets(wrong), Error) << wrong;
}

}  // namespace
}  // namespace ropd::eval
