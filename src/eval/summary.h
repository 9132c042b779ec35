// summary.json of an evaluation and its tables: what `ropd eval` writes, `ropd compare` and the report read
// (docs/formats.md). Shares and accuracies are fractions of one in files and percent in tables.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "eval/scoring.h"
#include "stats/bootstrap.h"
#include "stats/metrics.h"

namespace ropd::eval {

// `about` (model, sampling, tokenizer, ...) is copied into the summary as it is.
Json summary_json(const Evaluation& evaluation, const Json& about);

// One table per budget: a row per benchmark and one for the mean.
std::string markdown_table(const Evaluation& evaluation);
std::string console_table(const Evaluation& evaluation);

// An evaluation as `compare` needs it: the accuracy of every question at every budget.
struct EvaluationSummary {
  std::string label;  // the folder's name, or what the user calls it
  Path path;
  std::string suite;
  struct Benchmark {
    std::string name;
    std::string questions_sha256;
    std::vector<std::string> question_ids;
    std::vector<std::vector<double>> accuracy;  // [budgets][questions]
  };
  std::vector<uint32_t> budgets;
  std::vector<Benchmark> benchmarks;

  // Accuracies per question at a budget; fails when it was not scored at this budget.
  std::vector<stats::BenchmarkValues> at_budget(uint32_t budget) const;
};

// Reads DIR/summary.json (or the file itself), checked.
EvaluationSummary read_summary(const Path& directory_or_file);

// Fails unless both evaluations saw the same questions; names benchmarks and questions that differ.
void check_same_questions(const EvaluationSummary& left, const EvaluationSummary& right);

}  // namespace ropd::eval
