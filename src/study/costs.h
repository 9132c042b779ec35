// What the nodes of a study cost: estimated from the two config.json and the settings before they are made,
// measured while they are.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "study/plan.h"

namespace ropd::study {

struct NodeCost {
  uint64_t rollouts = 0;
  double tokens = 0;
  uint64_t memory_bytes = 0, disk_bytes = 0;
  double seconds = 0;
};

// Estimates at a speed of `flops` (train::measure_flops()); responses are assumed to have a quarter of their
// longest length. Not thread-safe: suites are read once and kept.
class CostEstimator {
 public:
  CostEstimator(const StudyFile& file, const std::vector<Run>& runs, double flops)
      : study_(file.config), runs_(runs), flops_(flops) {}
  NodeCost of(const Plan& plan, const Node& node);
  // What a run that waits for its trigger may add: half of its iterations, replayed, and its evaluation.
  NodeCost behind_trigger(size_t run);

 private:
  const StudyConfig& study_;
  const std::vector<Run>& runs_;
  const double flops_;
  std::map<std::string, uint64_t> suite_responses_;
  uint64_t responses_of(const EvaluationConfig& evaluation);
};

// Wall and processor time of this process since `begin`.
struct TimeSpent {
  double seconds = 0, processor_seconds = 0;
};
class Stopwatch {
 public:
  Stopwatch();
  TimeSpent spent() const;

 private:
  TimeSpent begin_;
};

}  // namespace ropd::study
