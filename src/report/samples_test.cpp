#include "report/samples.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "io/sample_file.h"
#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

TEST(LastBoxed, IsTheLastOneThatIsClosed) {
  EXPECT_EQ(last_boxed("\\boxed{1} then \\boxed{\\frac{1}{2}}"), "\\frac{1}{2}");
  EXPECT_EQ(last_boxed("\\boxed{1} then \\boxed{2"), "1");
  EXPECT_EQ(last_boxed("\\boxed{"), std::nullopt);
  EXPECT_EQ(last_boxed(""), std::nullopt);
}

class Responses : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  Path file_ = directory_ / "responses.jsonl";

  static std::string line(const std::string& benchmark, const std::string& id, int sample,
                          const std::string& text) {
    return Json{{"benchmark", benchmark}, {"query_id", id},  {"sample", sample},         {"text", text},
                {"answer", "1"},          {"finish", "eos"}, {"response_ids", {1, 2, 3}}}
               .dump() +
           "\n";
  }
};

TEST_F(Responses, QueriesAreSpreadOverTheFile) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += line("b", "q" + std::to_string(100 + i), 0, "text");
  test::write_text(file_, lines);
  const auto queries = choose_queries(file_, 4);
  ASSERT_EQ(queries.size(), 4u);
  EXPECT_EQ(queries[0].query_id, "q112");
  EXPECT_EQ(queries[3].query_id, "q187");
}

TEST_F(Responses, TheFirstSampleOfTheRightBenchmarkIsFound) {
  test::write_text(file_, line("a", "1", 0, "of a, not \"1\" of b") + line("b", "2", 0, "says \"1\"") +
                              line("b", "1", 0, "first") + line("b", "1", 1, "second"));
  const auto found = find_responses(file_, {{"b", "1"}, {"b", "9"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, "first");
  EXPECT_EQ(found[0].num_tokens, 3);
  EXPECT_FALSE(found[0].is_cut);
}

TEST_F(Responses, EmptyAndBrokenFiles) {
  test::write_text(file_, "");
  EXPECT_TRUE(choose_queries(file_, 4).empty());
  test::write_text(file_, "{\"query_id\": ");
  EXPECT_THROW(choose_queries(file_, 1), Error);
}

TEST_F(Responses, EveryMethodAnswersTheSameQueries) {
  std::vector<RunData> runs;
  for (const size_t i : {0u, 1u, 2u}) {
    const auto fake = test::fake_laboratory()[i];
    const Path path = directory_ / ("run" + std::to_string(i));
    test::write_fake_run(path, fake);
    runs.push_back(read_run(fake.name + "=" + path.string()));
  }
  const Comparison comparison = compare_methods(runs);
  const auto samples = compare_samples(comparison, 3);
  ASSERT_EQ(samples.size(), 3u);
  ASSERT_EQ(samples[0].responses.size(), 3u);
  EXPECT_EQ(samples[0].responses[0].label, "initial student");
  EXPECT_EQ(samples[0].responses[2].label, "current");
  EXPECT_EQ(samples[0].answer, "6");
  EXPECT_LT(samples[0].responses[0].response.num_tokens, samples[0].responses[2].response.num_tokens);
}

ResponseSample kept(const std::string& id, const std::string& text) {
  return {.benchmark = "digits-06",
          .query_id = id,
          .question = "what is " + id + "?",
          .answer = "6",
          .correct = false,
          .finish = Finish::length,
          .num_tokens = 90,
          .tokens = {{{text, 1, -0.5, -1.5}, {}}}};
}

TEST_F(Responses, ThoseKeptForReadingGoFirst) {
  std::vector<RunData> runs;
  for (const size_t i : {0u, 2u}) {
    const auto fake = test::fake_laboratory()[i];
    const Path path = directory_ / ("run" + std::to_string(i));
    test::write_fake_run(path, fake);
    if (i == 0)
      io::write_samples(path / "eval/final/samples.jsonl",
                        {kept("digits-06-103", "three"), kept("digits-06-105", "five")});
    runs.push_back(read_run(fake.name + "=" + path.string()));
  }
  const Comparison comparison = compare_methods(runs);
  const auto samples = compare_samples(comparison, 4);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[1].query.query_id, "digits-06-105");
  EXPECT_EQ(samples[1].question, "what is digits-06-105?");
  ASSERT_EQ(samples[1].responses.size(), 2u);
  const SampleResponse& first = samples[1].responses[0].response;
  EXPECT_EQ(first.text, "five");
  EXPECT_EQ(first.tokens.size(), 1u);
  EXPECT_EQ(first.correct, false);
  EXPECT_TRUE(first.is_cut);
  EXPECT_EQ(first.num_tokens, 90);
  const SampleResponse& second = samples[1].responses[1].response;  // kept nothing: from its responses.jsonl
  EXPECT_TRUE(second.tokens.empty());
  EXPECT_THAT(second.text, ::testing::HasSubstr("boxed{6}"));
}

TEST(DiagnosisSamples, AreGroupedByTheResponse) {
  DiagnosisData diagnosis;
  for (const char* student : {"theta0", "R20"})
    for (const char* id : {"q1", "q2"}) {
      diagnosis.samples.push_back(kept(id, "text"));
      diagnosis.samples.back().benchmark = "";
      diagnosis.samples.back().source = "theta0";
      diagnosis.samples.back().student = student;
    }
  const auto samples = diagnosis_samples(diagnosis);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].query.query_id, "q1, sample 0");
  ASSERT_EQ(samples[0].responses.size(), 2u);
  EXPECT_EQ(samples[0].responses[1].label, "as R20 sees it");
}

TEST_F(Responses, RolloutsServeWithoutEvaluations) {
  const auto fake = test::fake_laboratory()[2];
  const Path path = directory_ / "run";
  test::write_fake_run(path, fake);
  std::filesystem::remove_all(path / "eval");
  test::write_text(path / "rollouts/iter-0001.jsonl", line("", "q", 0, "short"));
  test::write_text(path / "rollouts/iter-0015.jsonl", line("", "q", 0, "long"));
  const std::vector<RunData> runs = {read_run(path.string())};
  const Comparison comparison = compare_methods(runs);
  const auto samples = compare_samples(comparison, 2);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].responses[0].response.text, "short");
  EXPECT_EQ(samples[0].responses[1].response.text, "long");
}

}  // namespace
}  // namespace ropd::report
