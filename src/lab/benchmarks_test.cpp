#include "lab/benchmarks.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "base/error.h"
#include "eval/suite.h"
#include "io/jsonl.h"
#include "support/test_data.h"

namespace ropd::lab {
namespace {

TEST(TrainingQueries, AreTwelveOfEachLengthAllDifferent) {
  const auto queries = make_training_queries();
  std::map<size_t, int> counts;
  std::set<std::string> texts;
  for (const Problem& query : queries) {
    ++counts[query.operations.size()];
    texts.insert(problem_text(query));
  }
  EXPECT_EQ(queries.size(), 48u);
  EXPECT_EQ(texts.size(), 48u);
  EXPECT_EQ(counts, (std::map<size_t, int>{{3, 12}, {6, 12}, {9, 12}, {12, 12}}));
}

TEST(TrainingQueries, NeverChange) {
  // Part of the numerics contract: results of different versions are compared on these problems.
  const auto queries = make_training_queries();
  EXPECT_EQ(problem_text(queries[0]) + problem_text(queries[1]) + problem_text(queries[47]),
            "0adc?5bdfdbc?5eeccaefacadd?");
}

TEST(Benchmarks, HoldNoTrainingQueryAndNoRepetition) {
  std::set<std::string> seen;
  for (const Problem& query : make_training_queries()) seen.insert(problem_text(query));
  const auto benchmarks = make_benchmarks(128);
  ASSERT_EQ(benchmarks.size(), 4u);
  EXPECT_EQ(benchmarks[0].name, "digits-03");
  EXPECT_EQ(benchmarks[3].name, "digits-12");
  for (const Benchmark& benchmark : benchmarks) {
    EXPECT_EQ(benchmark.problems.size(), 128u);
    for (const Problem& problem : benchmark.problems) EXPECT_TRUE(seen.insert(problem_text(problem)).second);
  }
  EXPECT_THROW(make_benchmarks(0), Error);
  EXPECT_THROW(make_benchmarks(2000), Error);
}

TEST(LabData, IsASuiteThatTheEvaluationLoads) {
  const test::TemporaryDirectory directory;
  write_lab_data(directory.path(), 8, 4);
  const eval::Suite suite = eval::load_suite((directory / "suite.yaml").string(), directory.path());
  EXPECT_EQ(suite.name, "lab");
  ASSERT_EQ(suite.benchmarks.size(), 4u);
  EXPECT_EQ(suite.num_responses(), 4u * 8 * 4);
  for (const auto& benchmark : suite.benchmarks)
    for (const Query& question : benchmark.questions) {
      // The prompt is the bare problem, and the answer its solution.
      const auto messages = benchmark.messages_of(question);
      ASSERT_EQ(messages.size(), 1u);
      EXPECT_EQ(question.answer, std::to_string(solve(parse_problem(messages[0].content))));
    }
}

TEST(LabData, QueriesAreOrdinaryJsonl) {
  const test::TemporaryDirectory directory;
  write_lab_data(directory.path(), 1, 1);
  io::JsonlReader reader(directory / "queries.jsonl");
  size_t count = 0;
  io::for_each_json_row(reader, [&](Json&& row, const std::string&) {
    EXPECT_EQ(row["answer"], std::to_string(solve(parse_problem(row["problem"].get<std::string>()))));
    ++count;
  });
  EXPECT_EQ(count, 48u);
}

TEST(TrainingQueries, BeginAlikeHoweverManyThereAre) {
  const auto few = make_training_queries(48), many = make_training_queries(1408);
  for (size_t i = 0; i < few.size(); ++i) EXPECT_EQ(problem_text(few[i]), problem_text(many[i]));
  std::set<std::string> texts;
  for (const Problem& query : many) texts.insert(problem_text(query));
  EXPECT_EQ(texts.size(), 1408u);
  for (const Benchmark& benchmark : make_benchmarks(128, kBenchmarkSeed, 1408))
    for (const Problem& problem : benchmark.problems) EXPECT_FALSE(texts.contains(problem_text(problem)));
}

}  // namespace
}  // namespace ropd::lab
