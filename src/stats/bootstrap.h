// Paired question bootstrap (method.md section 9): in every draw the questions of each benchmark are
// resampled with replacement, the same resample for all evaluations under comparison, so that only
// differences per question enter. A benchmark's statistic is the mean of its resampled differences, the
// suite's the equal mean over benchmarks; intervals are percentiles over the draws. Draws are Philox numbers
// indexed by (seed, benchmark name, draw, question): a benchmark's interval does not depend on which others
// are in the suite, nor on threads.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ropd::stats {

// One value a question: a difference of two accuracies, or (A - B) - (C - D) for an interaction.
struct BenchmarkValues {
  std::string name;
  std::vector<double> values;  // [questions], at least one
};

struct BootstrapConfig {
  uint32_t draws = 20000;
  uint64_t seed = 1;
  double coverage = 0.95;
};

struct Interval {
  double estimate = 0;
  double low = 0;
  double high = 0;
};

struct BootstrapResult {
  std::vector<Interval> benchmarks;  // as given
  Interval mean;                     // equal mean over benchmarks
};

BootstrapResult bootstrap(std::span<const BenchmarkValues> benchmarks, const BootstrapConfig& config);

// Differences per question; shapes and names agree (the caller has checked that the questions are the same).
std::vector<BenchmarkValues> subtract(std::span<const BenchmarkValues> left,
                                      std::span<const BenchmarkValues> right);

// The value below which `share` of the sorted values lie, with linear interpolation.
double quantile(std::span<const double> sorted, double share);

}  // namespace ropd::stats
