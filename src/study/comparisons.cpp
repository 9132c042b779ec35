#include "study/comparisons.h"

#include <algorithm>

#include "diagnostics/prefixes.h"
#include "diagnostics/probes.h"
#include "stats/table.h"

namespace ropd::study {
namespace {

constexpr uint64_t kBootstrapSeed = 20260906;  // the paper's

using Side = std::optional<std::vector<stats::RunValues>>;  // a run each

// One value a response or minibatch; those without a value are left out, in all runs alike. `own`, of which
// only cosines ask, is the same student on its own responses.
std::vector<std::optional<double>> values_of(const DiagnosisCell& cell, const DiagnosisCell& own,
                                             const std::string& measure) {
  if (measure == "cosine") return diagnostics::paired_cosines(own.coordinates, cell.coordinates);
  std::vector<std::optional<double>> values;
  if (measure == "norm") {
    values.assign(cell.norms.begin(), cell.norms.end());
  } else if (measure == "less_likely") {
    for (const auto& share : cell.response_less_likely)
      values.push_back(share ? std::optional(100 * *share) : std::nullopt);
  } else {
    for (const auto& positions : cell.position_kl)
      values.push_back(diagnostics::mean_over_responses({positions}));
  }
  return values;
}

Side diagnosis_side(const Results& results, const ComparisonConfig& comparison, const std::string& text) {
  const size_t d = index_of(results.study().diagnoses, comparison.diagnosis);
  const auto& diagnosis = results.study().diagnoses[d];
  const DiagnosisSide side = parse_diagnosis_side(text);
  const size_t student = index_of(diagnosis.students, side.student);
  const auto cells = results.cells(d, student, index_of(diagnosis.sources, side.source));
  if (cells.empty()) return std::nullopt;
  const bool is_cosine = comparison.measure == "cosine";
  const auto own = is_cosine ? results.cells(d, student, *source_of_own(diagnosis, side.student)) : cells;
  if (own.size() != cells.size()) return std::nullopt;
  std::vector<std::vector<std::optional<double>>> all;
  for (size_t r = 0; r < cells.size(); ++r) all.push_back(values_of(*cells[r], *own[r], comparison.measure));
  std::vector<stats::RunValues> runs(all.size(), {{.name = comparison.diagnosis}});
  for (size_t i = 0; i < all[0].size(); ++i)
    if (std::all_of(all.begin(), all.end(), [&](const auto& run) { return i < run.size() && run[i]; }))
      for (size_t r = 0; r < all.size(); ++r) runs[r][0].values.push_back(*all[r][i]);
  if (runs[0][0].values.empty()) return std::nullopt;
  return runs;
}

stats::Measure measure_of(const ComparisonConfig& comparison) {
  return comparison.measure.empty() ? stats::Measure{} : stats::parse_measure(comparison.measure);
}

Side side_of(const Results& results, const ComparisonConfig& comparison, const std::string& text,
             const stats::Measure& measure, std::optional<uint64_t> budget) {
  const auto row = find_row(results.study(), results.runs(), text);
  return results.values(*row, index_of(results.study().evaluations, comparison.evaluation), measure, budget);
}

Side side(const Results& results, const ComparisonConfig& comparison, const std::string& text) {
  return comparison.diagnosis.empty()
             ? side_of(results, comparison, text, measure_of(comparison), comparison.budget)
             : diagnosis_side(results, comparison, text);
}

// [benchmarks] mean over runs of a side's length at the largest budget.
std::optional<std::vector<double>> lengths(const Results& results, const ComparisonConfig& comparison,
                                           const std::string& text) {
  const Side runs = side_of(results, comparison, text, stats::parse_measure("length"), std::nullopt);
  if (!runs) return std::nullopt;
  std::vector<double> means(runs->front().size(), 0);
  for (const stats::RunValues& run : *runs)
    for (size_t b = 0; b < run.size(); ++b) means[b] += stats::suite_mean({run[b]});
  return means;
}

stats::Contrast contrast_of(const Results& results, const ComparisonConfig& comparison,
                            const std::vector<stats::RunValues>& better) {
  // Runs of one order share their data: they are compared with each other.
  const bool is_paired = better.size() > 1;
  if (comparison.against) {
    std::vector<std::vector<stats::RunValues>> groups = {better};
    for (stats::RunValues& run : groups[0])
      for (auto& benchmark : run)
        for (double& value : benchmark.values) value -= *comparison.against;
    const double weight = 1;
    return stats::weighted_sum(groups, std::span(&weight, 1), is_paired);
  }
  const Side worse = side(results, comparison, comparison.worse);
  if (!worse || worse->size() != better.size()) return {};
  if (!comparison.at) return stats::difference(better, *worse, is_paired);
  const Side at = side(results, comparison, *comparison.at),
             minus = side(results, comparison, *comparison.minus);
  if (!at || !minus) return {};
  return stats::interaction(better, *worse, *at, *minus, is_paired);
}

}  // namespace

std::optional<MeasuredComparison> measure(const Results& results, const ComparisonConfig& comparison) {
  const Side better = side(results, comparison, comparison.better);
  if (!better) return std::nullopt;
  const stats::Contrast contrast = contrast_of(results, comparison, *better);
  if (contrast.empty()) return std::nullopt;
  MeasuredComparison measured;
  measured.effect = stats::bootstrap(std::span(&contrast, 1), {.seed = kBootstrapSeed}).front();
  for (const auto& benchmark : better->front()) measured.benchmarks.push_back(benchmark.name);
  if (!comparison.diagnosis.empty() || comparison.worse.empty()) return measured;
  const auto over = lengths(results, comparison, comparison.better),
             under = lengths(results, comparison, comparison.worse);
  for (size_t b = 0; over && under && b < over->size(); ++b)
    measured.length_ratios.push_back((*over)[b] / (*under)[b]);
  return measured;
}

std::string comparison_text(const ComparisonConfig& comparison) {
  std::string text = comparison.better;
  if (!comparison.measure.empty()) text = comparison.measure + " of " + text;
  if (!comparison.worse.empty()) text += " - " + comparison.worse;
  if (comparison.against) text += " - " + stats::csv_number(*comparison.against);
  if (comparison.at) text += " - (" + *comparison.at + " - " + *comparison.minus + ")";
  if (comparison.budget) text += " at " + std::to_string(*comparison.budget);
  return text;
}

}  // namespace ropd::study
