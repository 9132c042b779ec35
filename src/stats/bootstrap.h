// How large an effect is and how sure, from two sources of chance that are kept apart: questions and runs.
//
// A contrast is a weighted sum of methods, sum_g w_g * mean over the runs of g: a method's own value (1), a
// difference (1, -1), an interaction (1, -1, -1, 1). Every measure is a mean over questions within a
// benchmark, then an equal mean over benchmarks. In every draw the questions of each benchmark are resampled
// with replacement, the same resample for all runs, so that only differences per question enter (method.md
// section 9); and the runs of each group are resampled, the same resample for all questions. Paired runs (one
// data order and seed, several methods) form one group that holds the contrast of each order.
//
//   questions: percentiles of the draws that keep the runs: these runs on other questions (the paper's interval).
//   interval:  percentiles of the draws that resample both, stretched about the estimate to the standard error and
//     the Student quantile (Satterthwaite's degrees of freedom) that variance components give:
//       SE^2 = question part + max(0, run part - the residual that both contain).
//     Resampling three runs alone covers 78 to 99 % instead of 95; stretched it covers 93.8 to 97.2 %
//     (bootstrap_test simulates it), with two runs sometimes only 87 %.
//
// Draws are Philox numbers indexed by (seed, benchmark name, draw, question): an interval does not depend on
// which other benchmarks or contrasts are computed, nor on threads.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ropd::stats {

struct BenchmarkValues {
  std::string name;
  std::vector<double> values;  // [questions], at least one
};

// One run: [benchmarks].
using RunValues = std::vector<BenchmarkValues>;

// Runs that share their chance; those of different groups are independent.
struct RunGroup {
  double weight = 1;
  std::vector<RunValues> runs;  // [runs], at least one; the same questions in all
};
using Contrast = std::vector<RunGroup>;

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

struct Effect {
  Interval questions;          // other questions, these runs
  Interval interval;           // other questions and other runs, as far as includes_runs says
  bool includes_runs = false;  // every group has two runs or more; otherwise other runs may differ by more
  double standard_error = 0;   // of `interval`
  double degrees_of_freedom = 0;
  double p = 1;  // two-sided, of no effect
};

struct SuiteEffect {
  std::vector<Effect> benchmarks;  // as given
  Effect mean;                     // equal mean over benchmarks
};

// All contrasts have the same benchmarks and questions.
std::vector<SuiteEffect> bootstrap(std::span<const Contrast> contrasts, const BootstrapConfig& config);

// sum_g weights[g] * groups[g]. Paired: run i of every group shares its data order and seeds, and there are
// equally many.
Contrast weighted_sum(std::span<const std::vector<RunValues>> groups, std::span<const double> weights,
                      bool is_paired);
Contrast difference(const std::vector<RunValues>& left, const std::vector<RunValues>& right, bool is_paired);
// (a - b) - (c - d)
Contrast interaction(const std::vector<RunValues>& a, const std::vector<RunValues>& b,
                     const std::vector<RunValues>& c, const std::vector<RunValues>& d, bool is_paired);

// Equal mean over benchmarks of the means over questions.
double suite_mean(const RunValues& run);
// The contrast of each run, where all its runs are one group; otherwise empty.
std::vector<double> run_effects(const Contrast& contrast);

// Holm's adjusted probabilities of a family of comparisons: adjusted[i] < a keeps the chance of any false
// claim in the family below a.
std::vector<double> holm(std::span<const double> p);

// The value below which `share` of the sorted values lie, with linear interpolation.
double quantile(std::span<const double> sorted, double share);

}  // namespace ropd::stats
