// An evaluation as comparisons and reports need it: summary.json (docs/formats.md) read and checked, with the
// values of every question at every budget. What makes two evaluations comparable is decided here: the same
// questions, or it fails; the same settings, or the differences are named.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "stats/answer_metrics.h"
#include "stats/bootstrap.h"
#include "stats/measures.h"

namespace ropd::stats {

struct EvaluationSummary {
  std::string label;  // the folder's name
  Path path;          // of summary.json
  std::string suite;
  std::string suite_fingerprint;  // of names, samples, prompts and questions
  // What must agree between evaluations that are compared: name and value. Empty when the responses came from
  // elsewhere and nothing is known of them.
  std::vector<std::pair<std::string, std::string>> settings;

  struct Benchmark {
    std::string name;
    uint64_t samples = 0;
    std::string questions_sha256;
    std::vector<std::string> question_ids;
    std::vector<std::vector<QuestionValues>> questions;  // [budgets][questions]
    std::vector<std::vector<LengthBin>> by_length;       // [budgets]
    std::vector<std::vector<PassAtK>> pass_at_k;         // [budgets]
  };
  std::vector<uint32_t> budgets;  // ascending
  std::vector<Benchmark> benchmarks;

  bool has_budget(uint32_t budget) const;
  // One value a question. Benchmarks where the measure is not known (pass@32 of four responses) are left out;
  // fails when none is left, or when it was not scored at this budget.
  RunValues values(const Measure& measure, uint32_t budget) const;
};

// Reads DIR/summary.json (or the file itself), checked.
EvaluationSummary read_summary(const Path& directory_or_file);

// DIR itself, or the only evaluation below DIR/eval.
Path find_evaluation(const Path& directory);

// Fails unless both evaluations saw the same questions; names benchmarks and questions that differ.
void check_same_questions(const EvaluationSummary& left, const EvaluationSummary& right);

// "temperature is 0.2 in a and 1.0 in b", one for each setting that differs, or that is known of one only.
std::vector<std::string> different_settings(const EvaluationSummary& left, const EvaluationSummary& right);

}  // namespace ropd::stats
