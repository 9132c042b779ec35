// Which problems the laboratory trains and tests on: 48 training queries (12 of each length, seed 20260829)
// and one benchmark per length n = 3, 6, 9, 12. Inside a set all problems differ, and no benchmark problem is
// a training query. Supervised examples are drawn from all problems: of the 2,160 with n = 3 every one is
// seen there, of the others almost none twice.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "lab/world.h"

namespace ropd::lab {

inline constexpr uint64_t kQuerySeed = 20260829;
inline constexpr uint64_t kBenchmarkSeed = 20261115;

struct Benchmark {
  std::string name;  // digits-03 ... digits-12
  std::vector<Problem> problems;
};

// Query i has length 3, 6, 9, 12, 3, ...: no part of the batch is systematically longer, also without a
// permutation.
std::vector<Problem> make_training_queries(int count = 48, uint64_t seed = kQuerySeed);
std::vector<Benchmark> make_benchmarks(int problems_each, uint64_t seed = kBenchmarkSeed,
                                       int num_queries = 48);

// JSONL of {"id", "problem", "answer"}; ids are <name>-000, <name>-001, ...
void write_problems(const Path& path, const std::string& name, const std::vector<Problem>& problems);

// Writes queries.jsonl, one <benchmark>.jsonl each and suite.yaml (for `ropd eval --suite`) into `directory`.
// The first 48 queries are the same however many there are.
void write_lab_data(const Path& directory, int problems_each, int samples_each, int num_queries = 48);

}  // namespace ropd::lab
