// The laboratory's results on the console: a table (method x budget, length, tau) and one sentence per
// finding of the paper (method.md section 11): shown, not shown, opposite or not run, with the numbers. Pure
// functions of plain results. A difference between two methods counts when it exceeds 1.96 standard errors.
// Its standard error is the larger of two: that of sampling questions and responses (each run's own, unpaired
// and therefore on the safe side), and with several seeds the spread between them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace ropd::lab {

enum class Role { initial_student, teacher, current, initial_only, fixed, ropd, recent, initial_first };

struct RunResult {
  uint64_t seed = 1;
  std::vector<double> accuracy = {};        // [budgets], 0..1
  std::vector<double> standard_error = {};  // [budgets] of the accuracy; empty = unknown, taken as 0
  double length = 0;                        // mean response tokens at the longest budget
  double at_cap = 0;                        // share of responses
  std::optional<uint64_t> tau = {};
  std::optional<double> prefix_kl = {};             // on fixed prefixes of the initial student
  std::optional<double> prefixes_less_likely = {};  // share of them
};

struct MethodResult {
  std::string name;
  Role role = Role::current;
  std::vector<RunResult> runs = {};
};

struct LabResults {
  std::vector<int64_t> budgets = {};  // ascending
  uint64_t num_updates = 0;           // of every method
  std::vector<MethodResult> methods = {};
};

// Left minus right at one budget, over the seeds both have (or their means where seeds do not pair).
struct Difference {
  double left = 0, right = 0;  // means over the runs that count
  double mean = 0;
  double standard_error = 0;
  size_t num_pairs = 0;
};
Difference difference(const MethodResult& left, const MethodResult& right, size_t budget_index);

enum class Verdict { shown, not_shown, opposite, not_run };

struct Finding {
  Verdict verdict = Verdict::not_run;
  std::string claim;    // of the paper, in the laboratory's words
  std::string numbers;  // what was measured
};
std::vector<Finding> findings(const LabResults& results);

// Columns are aligned in a fixed-width font; accuracy in per cent, mean +- SD with several seeds.
std::string console_table(const LabResults& results);
std::string console_findings(const LabResults& results);
// For programs: methods with their runs, findings, the note.
Json results_json(const LabResults& results);
// What a reader would wonder about: why nobody beats the initial student yet. Empty when somebody does.
std::string console_note(const LabResults& results);

}  // namespace ropd::lab
