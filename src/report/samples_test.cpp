#include "report/samples.h"

#include <gmock/gmock.h>

#include "base/error.h"
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
