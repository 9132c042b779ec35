// What the report takes out of a run directory (docs/formats.md): every part may be absent,
// since a folder with only an evaluation (the teacher, the initial student) is a row of the tables too. Files
// are checked and bounded; a broken one is an error that names file and line, because a report with silent
// holes would mislead.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "records/metrics.h"

namespace ropd::report {

// Shares of responses by {extracted, not} x {below the cap, at the cap}, in this order; they add up to one.
inline constexpr std::array<const char*, 4> kCategoryNames = {"answer, ended", "answer, at cap",
                                                              "no answer, ended", "no answer, at cap"};

struct BudgetResult {
  int64_t budget = 0;    // tokens kept of every response
  double accuracy = 0;   // mean over benchmarks, 0..1
  double length = 0;     // mean retained tokens
  double extracted = 0;  // shares of responses
  double at_cap = 0;
  std::array<double, 4> categories{};
};

struct BenchmarkResult {
  std::string name;
  std::vector<double> accuracy;  // [budgets]
};

struct EvaluationResult {
  std::string name;  // of the folder below eval/
  std::vector<BudgetResult> budgets;
  std::vector<BenchmarkResult> benchmarks;
};

// The initial policy's fixed prefixes as this run's endpoint sees them.
struct PrefixResult {
  std::optional<double> kl;           // mean full-vocabulary reverse KL to the teacher
  std::optional<double> less_likely;  // share of prefixes that became less likely than under theta_0
  std::vector<std::pair<double, double>>
      cumulative;  // change of log-likelihood, share of prefixes at or below it
};

struct RunData {
  std::string label;  // the method's name in the report
  Path path;
  std::vector<IterationRecord> iterations;
  std::string config_text;                                       // config.yaml as it is
  std::vector<std::pair<std::string, std::string>> config;       // flattened: train.learning_rate -> 1e-6
  std::vector<std::pair<std::string, std::string>> environment;  // flattened likewise
  std::optional<EvaluationResult> evaluation;                    // the newest one
  std::optional<PrefixResult> prefixes;
  // files of responses, empty when absent
  Path evaluation_responses;
  Path first_rollouts;  // of the initial policy: the first iteration that sampled, or the initial bank
  Path last_rollouts;   // of the last iteration that sampled from the current policy

  bool is_trained() const { return !iterations.empty(); }
  std::optional<uint64_t> tau() const;
  // "" when the key is absent.
  std::string setting(const std::string& key) const;
};

// Reads a command-line argument DIR (label = the folder's name) or NAME=DIR. Fails when nothing of a run is
// there.
RunData read_run(const std::string& argument);

}  // namespace ropd::report
