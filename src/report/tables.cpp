#include "report/tables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ropd::report {
namespace {

using stats::budget_name;
using stats::Cell;
using stats::Measure;
using stats::number_cell;
using stats::Table;
using stats::TableRow;
using stats::text_cell;

const Measure kAccuracy{};

Cell spread_cell(const Spread& value, double scale, int decimals) {
  Cell cell = number_cell(scale * value.mean, decimals);
  if (value.count > 1) cell.deviation = scale * value.deviation;
  return cell;
}

std::string id_of(const char* name, size_t set_index) {
  return name + (set_index == 0 ? "" : "-" + std::to_string(set_index + 1));
}

std::string of_set(const Comparison& comparison, size_t set_index) {
  return comparison.results.size() > 1 ? " on " + comparison.results[set_index].name : "";
}

// Marks the largest value of a column among trained methods.
void mark_best(Table& table, size_t column) {
  Cell* best = nullptr;
  for (TableRow& row : table.rows) {
    Cell& cell = row.cells[column];
    if (row.is_reference || !cell.value || !std::isfinite(*cell.value)) continue;
    if (!best || *cell.value > *best->value) best = &cell;
  }
  if (best) best->is_best = true;
}

void add_run_note(Table& table, const ResultSet& set) {
  if (std::any_of(set.methods.begin(), set.methods.end(),
                  [](const MethodResult& result) { return result.runs.size() > 1; }))
    table.notes.push_back("± sample standard deviation over runs.");
  else
    table.notes.push_back("One run each: what another run would give is not shown.");
}

// Only a curriculum that waits for the trigger has a τ of its own; others may carry the statistics of a shared
// beginning, or stand for a run whose trigger never fired.
bool waits_for_trigger(const RunData& run) {
  return (run.config.empty() && run.tau()) ||
         std::any_of(run.config.begin(), run.config.end(), [](const auto& entry) {
           return entry.first.ends_with(".until") && entry.second == "trigger";
         });
}

bool is_sampled(const IterationRecord& record) {
  return record.rollout_tokens_per_second.has_value() || record.source == "current";
}

}  // namespace

std::string tau_text(const Method& method) {
  if (std::none_of(method.runs.begin(), method.runs.end(),
                   [](const RunData* run) { return waits_for_trigger(*run); }))
    return "–";
  std::string text;
  std::vector<double> taus;
  for (const RunData* run : method.runs) {
    const bool has_tau = waits_for_trigger(*run) && run->tau();
    text += (text.empty() ? "" : ", ") + (has_tau ? std::to_string(*run->tau()) : std::string("none"));
    if (has_tau) taus.push_back(static_cast<double>(*run->tau()));
  }
  if (taus.size() < 2) return text;
  const Spread value = spread(taus);
  char mean[64];
  std::snprintf(mean, sizeof mean, " (%.1f ± %.1f)", value.mean, value.deviation);
  return text + mean;
}

Table headline_table(const Comparison& comparison, size_t set_index) {
  const ResultSet& set = comparison.results[set_index];
  Table table{
      .id = id_of("results", set_index),
      .caption = "Accuracy in per cent at each budget of tokens" + of_set(comparison, set_index) +
                 "; mean length in tokens and share at the cap, both at the longest budget; τ, the iteration "
                 "that set the trigger",
      .columns = {"method", "runs"}};
  for (const int64_t budget : set.budgets)
    table.columns.push_back(budget_name(static_cast<uint64_t>(budget)));
  for (const char* name : {"length", "at cap, %", "τ"}) table.columns.push_back(name);
  for (size_t m = 0; m < set.methods.size(); ++m) {
    const MethodResult& result = set.methods[m];
    if (!result.is_present()) continue;
    TableRow row{.cells = {text_cell(comparison.methods[m].label),
                           number_cell(static_cast<double>(result.runs.size()), 0)},
                 .is_reference = comparison.methods[m].is_reference};
    for (const int64_t budget : set.budgets)
      row.cells.push_back(spread_cell(result.at(kAccuracy, budget), 100, 1));
    row.cells.push_back(spread_cell(result.at({Measure::Kind::length}, set.budgets.back()), 1, 0));
    row.cells.push_back(spread_cell(result.at({Measure::Kind::at_cap}, set.budgets.back()), 100, 1));
    row.cells.push_back(text_cell(tau_text(comparison.methods[m])));
    table.rows.push_back(std::move(row));
  }
  for (size_t i = 0; i < set.budgets.size(); ++i) mark_best(table, 2 + i);
  add_run_note(table, set);
  table.notes.push_back("Bold: best trained method; the intervals of the differences say how sure that is.");
  return table;
}

Table benchmark_table(const Comparison& comparison, size_t set_index) {
  const ResultSet& set = comparison.results[set_index];
  Table table{.id = id_of("benchmarks", set_index),
              .caption = "Accuracy in per cent by benchmark and budget" + of_set(comparison, set_index),
              .columns = {"benchmark", "method"},
              .num_label_columns = 2};
  for (const int64_t budget : set.budgets)
    table.columns.push_back(budget_name(static_cast<uint64_t>(budget)));
  for (size_t b = 0; b < set.benchmarks.size(); ++b) {
    bool is_first = true;
    for (size_t m = 0; m < set.methods.size(); ++m) {
      if (!set.methods[m].is_present()) continue;
      TableRow row{
          .cells = {text_cell(is_first ? set.benchmarks[b] : ""), text_cell(comparison.methods[m].label)},
          .is_reference = comparison.methods[m].is_reference};
      for (const int64_t budget : set.budgets)
        row.cells.push_back(spread_cell(set.methods[m].at(kAccuracy, budget, b), 100, 1));
      table.rows.push_back(std::move(row));
      is_first = false;
    }
  }
  add_run_note(table, set);
  return table;
}

Table measures_table(const Comparison& comparison, size_t set_index) {
  const ResultSet& set = comparison.results[set_index];
  Table table{.id = id_of("measures", set_index),
              .caption = "Every measure at " + budget_name(static_cast<uint64_t>(set.budgets.back())) +
                         " tokens" + of_set(comparison, set_index) + "; shares in per cent, length in tokens",
              .columns = {"method"}};
  for (const Measure& measure : stats::all_measures()) table.columns.push_back(measure.name());
  for (size_t m = 0; m < set.methods.size(); ++m) {
    if (!set.methods[m].is_present()) continue;
    TableRow row{.cells = {text_cell(comparison.methods[m].label)},
                 .is_reference = comparison.methods[m].is_reference};
    for (const Measure& measure : stats::all_measures())
      row.cells.push_back(spread_cell(set.methods[m].at(measure, set.budgets.back()), measure.scale(),
                                      measure.is_share() ? 1 : 0));
    table.rows.push_back(std::move(row));
  }
  add_run_note(table, set);
  return table;
}

Compute compute_of(const std::vector<IterationRecord>& iterations) {
  Compute compute;
  double sampling_seconds = 0, num_sampled = 0, stored_seconds = 0, num_stored = 0;
  for (const IterationRecord& record : iterations) {
    const StageSeconds& seconds = record.seconds;
    const bool is_fresh = is_sampled(record);
    const auto tokens = static_cast<double>(record.response_tokens);
    // Of a mixture only a part is sampled: its share is what the sampling rate says.
    const double fresh_tokens =
        !is_fresh ? 0
        : record.source == "current" || !record.rollout_tokens_per_second
            ? tokens
            : std::min(tokens, std::round(*record.rollout_tokens_per_second * seconds.rollout));
    compute.trajectories += record.responses;
    compute.sampled += tokens > 0 ? std::round(record.responses * fresh_tokens / tokens) : 0;
    compute.tokens_sampled += fresh_tokens;
    compute.tokens_scored += tokens;
    compute.tokens_trained += tokens;
    compute.seconds_sampling += seconds.rollout;
    compute.seconds_scoring += seconds.score_student + seconds.score_teacher;
    compute.seconds_updating += seconds.update;
    compute.seconds_other += std::max(0.0, seconds.total - seconds.rollout - seconds.score_student -
                                               seconds.score_teacher - seconds.update);
    (is_fresh ? sampling_seconds : stored_seconds) += seconds.rollout;
    (is_fresh ? num_sampled : num_stored) += 1;
  }
  compute.seconds_saved =
      num_sampled > 0 ? num_stored * sampling_seconds / num_sampled - stored_seconds : NAN;
  return compute;
}

Table compute_table(const Comparison& comparison) {
  Table table{
      .id = "compute",
      .caption =
          "What training took, mean over runs: trajectories, tokens in thousands, seconds and share of the "
          "time by stage",
      .columns = {"method", "runs", "trajectories", "sampled", "K tokens sampled", "scored", "trained",
                  "seconds", "sampling, %", "scoring, %", "updates, %", "other, %", "saved by replay, s"}};
  for (const Method& method : comparison.methods) {
    if (method.is_reference) continue;
    Compute mean;
    double count = 0;
    for (const RunData* run : method.runs) {
      if (!run->is_trained()) continue;
      const Compute one = compute_of(run->iterations);
      for (const auto member :
           {&Compute::trajectories, &Compute::sampled, &Compute::tokens_sampled, &Compute::tokens_scored,
            &Compute::tokens_trained, &Compute::seconds_sampling, &Compute::seconds_scoring,
            &Compute::seconds_updating, &Compute::seconds_other, &Compute::seconds_saved})
        mean.*member += one.*member;
      ++count;
    }
    const double total = mean.seconds();
    if (count == 0 || total == 0) continue;  // fine-tuning records no times
    const auto share = [&](double seconds) { return number_cell(100 * seconds / total, 0); };
    table.rows.push_back(
        {.cells = {text_cell(method.label), number_cell(count, 0), number_cell(mean.trajectories / count, 0),
                   number_cell(mean.sampled / count, 0), number_cell(mean.tokens_sampled / count / 1000, 1),
                   number_cell(mean.tokens_scored / count / 1000, 1),
                   number_cell(mean.tokens_trained / count / 1000, 1), number_cell(total / count, 1),
                   share(mean.seconds_sampling), share(mean.seconds_scoring), share(mean.seconds_updating),
                   share(mean.seconds_other), number_cell(mean.seconds_saved / count, 1)}});
  }
  table.notes.push_back(
      "Saved: iterations that replay stored responses, times what sampling one took in the same run, less "
      "what reading "
      "them took; not known for a run that never samples. Seconds depend on the machine and on what else ran "
      "there.");
  return table;
}

std::vector<Table> diagnosis_tables(const DiagnosisData& d, size_t number) {
  const auto id = [&](const char* name) { return id_of(name, number); };
  std::vector<Table> tables;
  Table kl{.id = id("diagnosis-kl"),
           .caption =
               "Mean reverse KL to the teacher in nats: students (rows) on fixed prefixes of each source "
               "(columns)",
           .columns = {"student"}};
  for (const std::string& source : d.sources) kl.columns.push_back(source);
  for (size_t i = 0; i < d.students.size(); ++i) {
    TableRow row{.cells = {text_cell(d.students[i])}};
    for (const double value : d.kl[i]) row.cells.push_back(number_cell(value, 4));
    kl.rows.push_back(std::move(row));
  }
  Table fit{
      .id = id("diagnosis-fit-and-shift"),
      .caption =
          "Change of KL on each student's own states, in nats: fit (on the first one's states) and shift "
          "(other states)",
      .columns = {"from", "to", "change", "fit", "shift"},
      .num_label_columns = 2};
  for (const FitAndShift& x : d.fit_and_shift)
    fit.rows.push_back({.cells = {text_cell(x.from), text_cell(x.to), number_cell(x.change, 4),
                                  number_cell(x.fit, 4), number_cell(x.shift, 4)}});
  Table concentration{
      .id = id("diagnosis-concentration"),
      .caption =
          "Where the disagreement lies: mean KL of two students on the tenth of positions where a third "
          "one's "
          "is largest, and on the rest",
      .columns = {"prefixes of", "ranked by", "first", "second", "top tenth, first", "second", "rest, first",
                  "second", "share of difference in top tenth, %", "positions where first is lower, %"},
      .num_label_columns = 4};
  for (const Concentration& x : d.concentration)
    concentration.rows.push_back(
        {.cells = {text_cell(x.source), text_cell(x.rank_by), text_cell(x.first), text_cell(x.second),
                   number_cell(x.top[0], 4), number_cell(x.top[1], 4), number_cell(x.rest[0], 4),
                   number_cell(x.rest[1], 4), number_cell(100 * x.top_share, 1),
                   number_cell(100 * x.positions_first_lower, 1)}});
  Table likelihood{.id = id("diagnosis-likelihood"),
                   .caption = "Share of fixed prefixes that became less likely, %",
                   .columns = {"prefixes of", "from", "to", "less likely, %"},
                   .num_label_columns = 3};
  for (const LikelihoodChange& x : d.likelihood)
    likelihood.rows.push_back({.cells = {text_cell(x.source), text_cell(x.from), text_cell(x.to),
                                         number_cell(100 * x.less_likely, 2)}});
  Table norms{.id = id("diagnosis-gradient-norms"),
              .caption = "Gradient probes: norm on trajectories of each source, mean ± SD over minibatches",
              .columns = {"student", "source", "minibatches", "norm"},
              .num_label_columns = 2};
  for (const ProbeNorm& x : d.norms) {
    Cell norm = number_cell(x.mean, 5);
    norm.deviation = x.deviation;
    norms.rows.push_back(
        {.cells = {text_cell(x.student), text_cell(x.source), number_cell(x.minibatches, 0), norm}});
  }
  Table cosines{
      .id = id("diagnosis-gradient-cosines"),
      .caption =
          "Gradient probes: cosine between gradients on two sources, mean and standard error over pairs",
      .columns = {"student", "first", "second", "pairs", "cosine", "standard error"},
      .num_label_columns = 3};
  for (const ProbeCosine& x : d.cosines)
    cosines.rows.push_back(
        {.cells = {text_cell(x.student), text_cell(x.first), text_cell(x.second), number_cell(x.pairs, 0),
                   number_cell(x.mean, 3), number_cell(x.standard_error, 3)}});
  for (Table* table : {&kl, &fit, &concentration, &likelihood, &norms, &cosines})
    if (!table->rows.empty()) tables.push_back(std::move(*table));
  return tables;
}

}  // namespace ropd::report
