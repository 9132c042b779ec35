#include "eval/suite.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::eval {
namespace {

using ::testing::HasSubstr;

class SuiteFiles : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;

  void write(const std::string& name, const std::string& content) {
    write_file_atomically(directory_ / name, content);
  }
  Suite load() { return load_suite((directory_ / "suite.yaml").string(), directory_.path()); }
  std::string error() {
    try {
      load();
    } catch (const Error& failure) {
      return failure.what();
    }
    return "";
  }
};

TEST(Suite, EightHasThePapersCounts) {
  ROPD_NEEDS_DATA();
  const Suite suite = load_suite("eight", test::data_directory() / "benchmarks");
  std::vector<size_t> counts;
  for (const auto& benchmark : suite.benchmarks) counts.push_back(benchmark.questions.size());
  EXPECT_EQ(counts, (std::vector<size_t>{30, 30, 30, 83, 30, 33, 500, 675}));
  EXPECT_EQ(suite.num_responses(), 236u * 32 + 1175u * 4);
  const auto messages = suite.benchmarks[0].messages_of(suite.benchmarks[0].questions[0]);
  EXPECT_THAT(messages.back().content, ::testing::EndsWith("put your final answer within \\boxed{}."));
}

TEST(Suite, ThreeIsPartOfEight) {
  ROPD_NEEDS_DATA();
  const Suite three = load_suite("three", test::data_directory() / "benchmarks");
  const Suite eight = load_suite("eight", test::data_directory() / "benchmarks");
  EXPECT_EQ(three.num_responses(), 143u * 32);
  EXPECT_EQ(three.benchmarks[2].questions_sha256, eight.benchmarks[3].questions_sha256);
  EXPECT_NE(three.fingerprint, eight.fingerprint);
}

TEST_F(SuiteFiles, SettingsOfABenchmarkOverrideTheSuites) {
  write("a.jsonl", "{\"id\": \"1\", \"problem\": \"1+1?\", \"answer\": \"2\"}\n");
  write("suite.yaml",
        "name: mine\nprompt_prefix: 'Q: '\nprompt_suffix: ''\nbenchmarks:\n  - {name: a, file: a.jsonl, "
        "samples: 2}\n"
        "  - {name: b, file: a.jsonl, prompt_prefix: '', thinking: true}\n");
  const Suite suite = load();
  EXPECT_EQ(suite.name, "mine");
  EXPECT_EQ(suite.num_responses(), 3u);
  EXPECT_EQ(suite.benchmarks[0].messages_of(suite.benchmarks[0].questions[0])[0].content, "Q: 1+1?");
  EXPECT_EQ(suite.benchmarks[1].messages_of(suite.benchmarks[1].questions[0])[0].content, "1+1?");
  EXPECT_TRUE(suite.benchmarks[1].thinking);
}

TEST_F(SuiteFiles, FingerprintFollowsTheQuestions) {
  write("suite.yaml", "benchmarks: [{name: a, file: a.jsonl}]\n");
  write("a.jsonl", "{\"id\": \"1\", \"problem\": \"1+1?\", \"answer\": \"2\"}\n");
  const std::string before = load().fingerprint;
  EXPECT_EQ(load().fingerprint, before);
  write("a.jsonl", "{\"id\": \"1\", \"problem\": \"1+2?\", \"answer\": \"2\"}\n");
  EXPECT_NE(load().fingerprint, before);
}

TEST_F(SuiteFiles, WrongSuitesAreRefusedInOneLine) {
  write("suite.yaml", "benchmarks: [{name: a, file: absent.jsonl}]\n");
  EXPECT_THAT(error(), ::testing::AllOf(HasSubstr("benchmark 'a'"), HasSubstr("does not exist")));
  write("suite.yaml", "benchmarks: []\n");
  EXPECT_THAT(error(), HasSubstr("no benchmarks"));
  write("suite.yaml", "benchmarks: [{name: a, file: a.jsonl, sample: 3}]\n");
  EXPECT_THAT(error(), HasSubstr("samples"));
  write("suite.yaml", "benchmarks: [{name: a, file: a.jsonl}, {name: a, file: a.jsonl}]\n");
  EXPECT_THAT(error(), HasSubstr("suite.yaml:1: benchmarks[1]: the benchmark 'a' occurs twice"));
  EXPECT_THROW(load_suite("nine", directory_.path()), Error);
}

TEST_F(SuiteFiles, WrongQuestionsAreRefusedWithTheirLine) {
  write("suite.yaml", "benchmarks: [{name: a, file: a.jsonl, answers: integer}]\n");
  write("a.jsonl",
        "{\"id\": \"1\", \"problem\": \"p\", \"answer\": \"2\"}\n{\"id\": \"2\", \"problem\": \"q\"}\n");
  EXPECT_THAT(error(), HasSubstr("a.jsonl:2: question '2' has no answer"));
  write("a.jsonl", "{\"id\": \"1\", \"problem\": \"p\", \"answer\": \"\\\\frac{1}{2}\"}\n");
  EXPECT_THAT(error(), HasSubstr("expected an integer"));
  write("a.jsonl",
        "{\"id\": \"1\", \"problem\": \"p\", \"answer\": \"2\"}\n{\"id\": \"1\", \"problem\": \"q\", "
        "\"answer\": \"2\"}\n");
  EXPECT_THAT(error(), HasSubstr("id '1' is already at"));
  write("suite.yaml", "benchmarks: [{name: a, file: a.jsonl, questions: 3}]\n");
  write("a.jsonl", "{\"id\": \"1\", \"problem\": \"p\", \"answer\": \"2\"}\n");
  EXPECT_THAT(error(), HasSubstr("1 questions, suite 'suite' expects 3"));
  write("suite.yaml", "benchmarks: [{name: a, file: a.jsonl}]\n");
  write("a.jsonl", "{\"id\": \"1\", \"problem\": \"p\", \"answer\": \"{2\"}\n");
  EXPECT_THAT(error(), HasSubstr("expected braces that close"));
}

TEST(Suite, IntegersAsBenchmarksWriteThem) {
  for (const char* text : {"0", "042", "-7", "1,000", "336^\\circ", "142.0", "73^{\\circ}"})
    EXPECT_TRUE(is_integer_answer(text)) << text;
  for (const char* text : {"", "-", "1.5", "a", "\\frac{1}{2}", ",1", "1 2"})
    EXPECT_FALSE(is_integer_answer(text)) << text;
}

TEST_F(SuiteFiles, AreKnownByBenchmark) {
  write("suite.yaml",
        "name: mine\nbenchmarks:\n  - {name: a, file: sub/a.jsonl}\n  - {name: b, file: /far/b.jsonl}\n");
  EXPECT_THAT(benchmark_files((directory_ / "suite.yaml").string(), "data"),
              ::testing::ElementsAre(::testing::Pair("a", Path("data/sub/a.jsonl")),
                                     ::testing::Pair("b", Path("/far/b.jsonl"))));
}

}  // namespace
}  // namespace ropd::eval
