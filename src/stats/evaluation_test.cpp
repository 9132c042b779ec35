#include "stats/evaluation.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/json.h"
#include "support/test_data.h"

namespace ropd::stats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two benchmarks of two questions at two budgets, as `ropd eval` writes them.
Json small_summary() {
  const auto line = [](uint32_t budget, std::vector<double> accuracy) {
    return Json{{"budget", budget},
                {"accuracy", 0.5},
                {"pass_at_k", {{{"k", 1}, {"value", 0.5}}}},
                {"accuracy_by_length", {{{"begin", 0}, {"end", 512}, {"responses", 4}, {"accuracy", 0.5}}}},
                {"questions",
                 {{"accuracy", accuracy},
                  {"majority", {true, false}},
                  {"extraction", {1.0, 0.5}},
                  {"length", {9.0, 6.0}},
                  {"at_cap", {0.5, 1.0}},
                  {"extracted_at_cap", {0.5, 0.5}},
                  {"responses", {2, 2}}}}};
  };
  Json json = {{"format", 1},
               {"suite", "s"},
               {"suite_fingerprint", "f"},
               {"about", {{"temperature", 1.0}, {"max_tokens", 16}, {"grader", "reference"}}},
               {"budgets", {{{"budget", 8}}, {{"budget", 16}}}},
               {"benchmarks", Json::array()}};
  for (const char* name : {"a", "b"})
    json["benchmarks"].push_back({{"name", name},
                                  {"samples", 2},
                                  {"questions_sha256", "hash"},
                                  {"question_ids", {"q1", "q2"}},
                                  {"budgets", {line(8, {0.0, 0.5}), line(16, {0.5, 1.0})}}});
  return json;
}

class Summaries : public ::testing::Test {
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

TEST_F(Summaries, EveryMeasureOfEveryQuestionIsRead) {
  const auto summary = saved(small_summary());
  EXPECT_THAT(summary.budgets, ElementsAre(8, 16));
  EXPECT_THAT(summary.values(parse_measure("accuracy"), 8)[0].values, ElementsAre(0.0, 0.5));
  EXPECT_THAT(summary.values(parse_measure("accuracy"), 16)[1].values, ElementsAre(0.5, 1.0));
  EXPECT_THAT(summary.values(parse_measure("pass@n"), 8)[0].values, ElementsAre(0.0, 1.0));
  EXPECT_THAT(summary.values(parse_measure("majority"), 8)[0].values, ElementsAre(1.0, 0.0));
  EXPECT_THAT(summary.values(parse_measure("length"), 8)[0].values, ElementsAre(9.0, 6.0));
  EXPECT_THAT(summary.values(parse_measure("unextracted_at_cap"), 8)[0].values, ElementsAre(0.0, 0.5));
  EXPECT_EQ(summary.benchmarks[0].by_length[1][0].num_responses, 4u);
}

TEST_F(Summaries, ABudgetThatWasNotScoredSaysHowToScoreIt) {
  const auto summary = saved(small_summary());
  const auto text = error([&] { summary.values(parse_measure("accuracy"), 4); });
  EXPECT_THAT(text, HasSubstr("not scored at 4 tokens, only at 8, 16"));
  EXPECT_THAT(text, HasSubstr("in place of the present ones"));  // --rescore replaces, it does not add
}

TEST_F(Summaries, BenchmarksWithTooFewResponsesAreLeftOut) {
  Json json = small_summary();
  for (Json& line : json["benchmarks"][1]["budgets"]) line["questions"]["responses"] = {4, 4};
  const auto values = saved(json).values(parse_measure("pass@4"), 8);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].name, "b");
  EXPECT_THAT(error([&] { saved(json).values(parse_measure("pass@5"), 8); }), HasSubstr("not known for any"));
}

TEST_F(Summaries, OlderFilesHaveNoCategoriesPerQuestion) {
  Json json = small_summary();
  for (Json& benchmark : json["benchmarks"])
    for (Json& line : benchmark["budgets"]) line["questions"].erase("extracted_at_cap");
  const auto summary = saved(json);
  EXPECT_THAT(summary.values(parse_measure("accuracy"), 8)[0].values, ElementsAre(0.0, 0.5));
  EXPECT_THAT(error([&] { summary.values(parse_measure("extracted"), 8); }), HasSubstr("older version"));
}

TEST_F(Summaries, SameQuestionsAreAcceptedAndOthersNamed) {
  const auto left = saved(small_summary());
  EXPECT_EQ(error([&] { check_same_questions(left, left); }), "");
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

TEST_F(Summaries, SettingsThatDifferAreNamed) {
  const auto left = saved(small_summary());
  EXPECT_THAT(different_settings(left, left), IsEmpty());
  const auto differing = [&](const std::function<void(Json&)>& change) {
    Json json = small_summary();
    change(json);
    const auto differences = different_settings(left, saved(json));
    return differences.size() == 1 ? differences[0] : std::to_string(differences.size()) + " differences";
  };
  EXPECT_THAT(differing([](Json& json) { json["about"]["temperature"] = 0.2; }),
              HasSubstr("temperature is 1.0 in"));
  EXPECT_THAT(differing([](Json& json) { json["about"]["max_tokens"] = 99; }), HasSubstr("max_tokens is 16"));
  EXPECT_THAT(differing([](Json& json) { json["about"]["grader"] = "strict"; }), HasSubstr("and strict in"));
  EXPECT_THAT(differing([](Json& json) { json["benchmarks"][1]["samples"] = 4; }),
              HasSubstr("samples of b is 2"));
  EXPECT_THAT(differing([](Json& json) { json["suite_fingerprint"] = "g"; }), HasSubstr("prompts"));
  EXPECT_THAT(differing([](Json& json) { json["about"] = nullptr; }), HasSubstr("is not known"));
  EXPECT_EQ(differing([](Json& json) { json["about"].erase("grader"); }), "0 differences");
}

TEST_F(Summaries, TheOnlyEvaluationOfARunIsFound) {
  write_file_atomically(directory_ / "summary.json", "x");
  EXPECT_EQ(find_evaluation(directory_.path()), directory_.path());
  const Path run = directory_ / "run";
  std::filesystem::create_directories(run / "eval" / "one");
  EXPECT_THAT(error([&] { find_evaluation(run); }), HasSubstr("0 evaluations in eval/"));
  write_file_atomically(run / "eval" / "one" / "summary.json", "x");
  EXPECT_EQ(find_evaluation(run), run / "eval" / "one");
  std::filesystem::create_directories(run / "eval" / "two");
  write_file_atomically(run / "eval" / "two" / "summary.json", "x");
  EXPECT_THAT(error([&] { find_evaluation(run); }), HasSubstr("2 evaluations in eval/ (one, two)"));
}

TEST_F(Summaries, BrokenSummariesAreRefused) {
  EXPECT_THAT(error([&] { read_summary(directory_ / "absent"); }), HasSubstr("no such file"));
  const auto broken = [&](const std::function<void(Json&)>& change) {
    Json json = small_summary();
    change(json);
    return error([&] { saved(json); });
  };
  EXPECT_THAT(broken([](Json& json) { json["format"] = 2; }), HasSubstr("format 2, expected 1"));
  EXPECT_THAT(
      broken([](Json& json) { json["benchmarks"][0]["budgets"][0]["questions"]["accuracy"].erase(0); }),
      HasSubstr("'accuracy' has 1 values for 2 questions"));
  EXPECT_THAT(broken([](Json& json) { json = Json::array(); }), HasSubstr("no 'format' in it"));
  EXPECT_THAT(broken([](Json& json) { json["budgets"] = Json::array(); }), HasSubstr("budgets are absent"));
  EXPECT_THAT(broken([](Json& json) { json["benchmarks"][0]["samples"] = -1; }),
              HasSubstr("'samples' is -1"));
  EXPECT_THAT(
      broken([](Json& json) { json["benchmarks"][0]["budgets"][0]["questions"]["responses"][0] = 1e99; }),
      HasSubstr("expected a whole number"));
}

}  // namespace
}  // namespace ropd::stats
