// The comparisons of a study, measured: differences and interactions between rows of an evaluation, or between
// students on prefixes, with intervals over questions (responses, minibatches) and runs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stats/bootstrap.h"
#include "study/results.h"

namespace ropd::study {

struct MeasuredComparison {
  stats::SuiteEffect effect;
  std::vector<std::string> benchmarks;  // names, as effect.benchmarks
  std::vector<double> length_ratios;    // [benchmarks] better / worse; of evaluations with a `worse`
};

// Nothing while a side is not done.
std::optional<MeasuredComparison> measure(const Results& results, const ComparisonConfig& comparison);

// "R-OPD - current at 512": what is compared.
std::string comparison_text(const ComparisonConfig& comparison);

}  // namespace ropd::study
