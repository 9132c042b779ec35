// Runs with the same label (seeds, data orders) gathered into methods, with mean and sample standard
// deviation over the runs, and their evaluations into sets that saw the same questions. A method without training
// steps (the teacher, the initial student) is a reference: shown, but never counted as best.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/run_data.h"
#include "stats/answer_metrics.h"
#include "stats/comparison.h"

namespace ropd::report {

// Mean (NaN without values), sample SD (meaningful from two on) and count.
using Spread = stats::MeanDeviation;

Spread spread(std::span<const double> values);  // values that are not finite are left out

struct Method {
  std::string label;
  int style = 0;  // colour, dash and marker, the same in every figure
  bool is_reference = false;
  std::vector<const RunData*> runs = {};
};

// A method's evaluations on one set of questions.
struct MethodResult {
  std::vector<const stats::EvaluationSummary*> runs = {};  // the newest of each run that has one
  std::vector<std::string> orders = {};                    // [runs] RunData::order
  std::vector<const EvaluationData*> history = {};         // those made while training, of all runs

  bool is_present() const { return !runs.empty(); }
  // Over the runs that were scored at this budget. `benchmark` none: the equal mean over benchmarks.
  Spread at(const stats::Measure& measure, int64_t budget, std::optional<size_t> benchmark = {}) const;
};

// Evaluations of the same questions.
struct ResultSet {
  std::string name;                     // of the suite
  std::vector<int64_t> budgets;         // ascending, all that any evaluation has
  std::vector<std::string> benchmarks;  // names
  std::vector<MethodResult> methods;    // [Comparison::methods]
};

struct Comparison {
  std::vector<Method> methods;     // in the order given
  std::vector<ResultSet> results;  // in the order first seen
};

// Keeps pointers into `runs`.
Comparison compare_methods(std::span<const RunData> runs);

// Mean over a method's runs of one value per iteration; x = iteration. NaN where no run has a value.
struct Curve {
  std::vector<double> iteration, value;
};
Curve mean_curve(const Method& method, double (*value)(const IterationRecord&));

}  // namespace ropd::report
