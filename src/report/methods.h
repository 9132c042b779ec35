// Runs with the same label (seeds, data orders) gathered into methods, with mean and sample standard
// deviation over the runs. A method without training steps (the teacher, the initial student) is a reference:
// shown, but never counted as best.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/run_data.h"
#include "stats/metrics.h"

namespace ropd::report {

// Mean (NaN without values), sample SD (meaningful from two on) and count.
using Spread = stats::MeanDeviation;

Spread spread(std::span<const double> values);  // values that are not finite are left out

struct Method {
  std::string label;
  int style = 0;  // colour, dash and marker, the same in every figure
  bool is_reference = false;
  std::vector<const RunData*> runs = {};
  // from the evaluations
  std::vector<Spread> accuracy = {};  // [budgets], 0..1
  std::vector<Spread> lengths = {};   // [budgets] mean retained tokens
  Spread length = {}, at_cap = {};    // at the longest budget
  std::array<double, 4> categories{};
  bool has_evaluation = false;
};

struct Comparison {
  std::vector<int64_t> budgets;  // ascending; those of the first evaluation
  std::vector<Method> methods;   // in the order given
};

// Keeps pointers into `runs`.
Comparison compare_methods(std::span<const RunData> runs);

// Mean over a method's runs of one value per iteration; x = iteration. NaN where no run has a value.
struct Curve {
  std::vector<double> iteration, value;
};
Curve mean_curve(const Method& method, double (*value)(const IterationRecord&));

}  // namespace ropd::report
