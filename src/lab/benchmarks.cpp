#include "lab/benchmarks.h"

#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace ropd::lab {
namespace {

std::string numbered(const std::string& name, size_t index) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "-%03zu", index);
  return name + digits;
}

// `count` different problems of one length that are not in `taken`; adds them to `taken`.
std::vector<Problem> draw_problems(int count, int num_operations, uint64_t seed,
                                   std::set<std::string>& taken) {
  std::vector<Problem> problems;
  // The length is part of the index, so benchmarks of different lengths do not begin alike.
  uint64_t index = static_cast<uint64_t>(num_operations) << 32;
  while (problems.size() < static_cast<size_t>(count)) {
    Problem problem = make_problem(seed, index++, num_operations);
    if (taken.insert(problem_text(problem)).second) problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace

std::vector<Problem> make_training_queries(int count, uint64_t seed) {
  std::set<std::string> taken;
  std::vector<std::vector<Problem>> by_level;
  for (int level = 0; level < kNumLevels; ++level)
    by_level.push_back(
        draw_problems((count + kNumLevels - 1) / kNumLevels, kGroupSize * (level + 1), seed, taken));
  std::vector<Problem> queries;
  for (int i = 0; i < count; ++i)
    queries.push_back(by_level[static_cast<size_t>(i % kNumLevels)][static_cast<size_t>(i / kNumLevels)]);
  return queries;
}

std::vector<Benchmark> make_benchmarks(int problems_each, uint64_t seed, int num_queries) {
  constexpr int kMostProblems =
      1000;  // of the 2,160 with three operations: the search for new ones stays short
  if (problems_each < 1 || problems_each > kMostProblems)
    fail("lab benchmark with ", problems_each, " problems: expected 1..", kMostProblems);
  std::set<std::string> taken;
  for (const Problem& query : make_training_queries(num_queries)) taken.insert(problem_text(query));
  std::vector<Benchmark> benchmarks;
  for (int level = 0; level < kNumLevels; ++level) {
    const int num_operations = kGroupSize * (level + 1);
    char name[24];
    std::snprintf(name, sizeof name, "digits-%02d", num_operations);
    benchmarks.push_back({name, draw_problems(problems_each, num_operations, seed, taken)});
  }
  return benchmarks;
}

void write_problems(const Path& path, const std::string& name, const std::vector<Problem>& problems) {
  std::string lines;
  for (size_t i = 0; i < problems.size(); ++i) {
    const nlohmann::ordered_json line = {{"id", numbered(name, i)},
                                         {"problem", problem_text(problems[i])},
                                         {"answer", std::to_string(solve(problems[i]))}};
    lines += line.dump() + "\n";
  }
  write_file_atomically(path, lines);
}

void write_lab_data(const Path& directory, int problems_each, int samples_each, int num_queries) {
  std::filesystem::create_directories(directory);
  write_problems(directory / "queries.jsonl", "query", make_training_queries(num_queries));
  // The problem is the whole prompt: no instruction around it.
  std::string suite =
      "# ropd eval --suite suite.yaml --data <this folder>\nname: lab\nprompt_prefix: \"\"\nprompt_suffix: "
      "\"\"\nbenchmarks:\n";
  for (const Benchmark& benchmark : make_benchmarks(problems_each, kBenchmarkSeed, num_queries)) {
    const std::string file = benchmark.name + ".jsonl";
    write_problems(directory / file, benchmark.name, benchmark.problems);
    suite += "  - {name: " + benchmark.name + ", file: " + file +
             ", samples: " + std::to_string(samples_each) + ", questions: " + std::to_string(problems_each) +
             ", answers: integer" + "}\n";
  }
  write_file_atomically(directory / "suite.yaml", suite);
}

}  // namespace ropd::lab
