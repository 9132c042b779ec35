// Which tables a report has. Each is a stats::Table, so that the page, Markdown, LaTeX and CSV show the same numbers.
#pragma once
#include <vector>

#include "report/methods.h"
#include "stats/table.h"

namespace ropd::report {

// Accuracy at every budget, length and share at the cap at the longest, τ; a row per method. Best trained values
// are marked.
stats::Table headline_table(const Comparison& comparison, size_t set_index);
// Accuracy at every budget; a row per method and benchmark.
stats::Table benchmark_table(const Comparison& comparison, size_t set_index);
// Every measure at the longest budget; a row per method.
stats::Table measures_table(const Comparison& comparison, size_t set_index);

// What training cost and what replay saved; a row per method. No rows when nothing was trained.
stats::Table compute_table(const Comparison& comparison);

// KL matrix, fit and shift, concentration, likelihood and gradient probes of every diagnosis; those without rows are
// left out.
std::vector<stats::Table> diagnosis_tables(const DiagnosisData& diagnosis, size_t number);

// What one run of training took, summed over its iterations.
struct Compute {
  double trajectories = 0;  // used, replays counted
  double sampled = 0;       // of these sampled afresh
  double tokens_sampled = 0;
  double tokens_scored = 0;  // by each of the two models
  double tokens_trained = 0;
  double seconds_sampling = 0, seconds_scoring = 0, seconds_updating = 0, seconds_other = 0;
  double seconds() const { return seconds_sampling + seconds_scoring + seconds_updating + seconds_other; }
  // Iterations without fresh sampling times what sampling one took, less what reading stored ones took; NaN when the
  // run has no sampled iteration to compare with.
  double seconds_saved = 0;
};
Compute compute_of(const std::vector<IterationRecord>& iterations);

// "9, 7, 14 (10.0 ± 3.6)", "none"; a dash for a method that does not wait for a trigger.
std::string tau_text(const Method& method);

}  // namespace ropd::report
