// What a report says first, in words with intervals: each trained method against the first one, at the longest and the
// shortest budget, its length, what the trigger did, what replay saved.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "report/methods.h"
#include "stats/comparison.h"

namespace ropd::report {

// The differences of one set of questions.
struct Analysis {
  // Each other trained method minus the first one, and that minus the first reference.
  std::vector<std::pair<size_t, size_t>> sides;  // indices of Comparison::methods
  std::vector<stats::EffectCurve> accuracy;      // [sides]
  std::vector<stats::EffectCurve> length;        // [sides]
  std::vector<std::string> warnings;             // settings that differ: results may come from that
};

// Empty where there is nothing to compare.
Analysis analyse(const Comparison& comparison, const ResultSet& set, const stats::BootstrapConfig& config);

// Sentences in plain text.
std::vector<std::string> findings(const Comparison& comparison, const std::vector<Analysis>& analyses,
                                  const stats::BootstrapConfig& config);

}  // namespace ropd::report
