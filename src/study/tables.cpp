#include "study/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "io/metrics_file.h"
#include "stats/answer_metrics.h"
#include "study/comparisons.h"
#include "study/diagnosis_tables.h"
#include "study/verdict.h"

namespace ropd::study {
namespace {

int decimals_of(const stats::Measure& measure) { return measure.is_share() ? 2 : 0; }

std::vector<uint64_t> budgets_of(const EvaluationConfig& evaluation) {
  auto budgets = evaluation.budgets;
  if (budgets.empty()) budgets.push_back(evaluation.max_tokens);
  std::sort(budgets.begin(), budgets.end());
  return budgets;
}

// A measure of each evaluation, in its unit: the equal mean over benchmarks, or one benchmark's.
std::vector<double> measured(const Results& results, const std::vector<const PlannedEvaluation*>& done,
                             const stats::Measure& measure, std::optional<uint64_t> budget,
                             std::optional<size_t> benchmark = std::nullopt) {
  std::vector<double> values;
  for (const PlannedEvaluation* planned : done) {
    const auto& summary = results.summary(*planned);
    const auto all =
        summary.values(measure, budget ? static_cast<uint32_t>(*budget) : summary.budgets.back());
    values.push_back(measure.scale() *
                     (benchmark ? stats::suite_mean({all[*benchmark]}) : stats::suite_mean(all)));
  }
  return values;
}

bool has_trigger(const Run& run) {
  const auto stages = train::make_stages(run.config);
  return std::any_of(stages.begin(), stages.end(),
                     [](const curriculum::Stage& stage) { return stage.until_trigger; });
}

std::vector<double> taus_of(const Results& results, const Row& row) {
  std::vector<double> taus;
  for (const size_t r : row.runs)
    if (results.plan().runs[r].tau) taus.push_back(static_cast<double>(*results.plan().runs[r].tau));
  return taus;
}

// "9, none, 15 (12.00 ± 4.24)"
std::string tau_text(const Results& results, const Row& row) {
  if (!has_trigger(results.runs()[row.runs.front()])) return "-";
  std::string text;
  for (const size_t r : row.runs) {
    const RunProgress& run = results.plan().runs[r];
    text += (text.empty() ? "" : ", ") + (run.tau           ? std::to_string(*run.tau)
                                          : run.is_complete ? std::string("none")
                                                            : std::string("not known"));
  }
  const auto taus = taus_of(results, row);
  return taus.size() > 1 ? text + " (" + stats::cell_text(spread_cell(taus, 2)) + ")" : text;
}

stats::Table evaluation_table(const Results& results, size_t e) {
  const EvaluationConfig& evaluation = results.study().evaluations[e];
  const auto budgets = budgets_of(evaluation);
  stats::Table table{.id = evaluation.name,
                     .caption = evaluation.name + ": accuracy (%) by budget; the rest at the largest",
                     .columns = {"method"}};
  for (const uint64_t budget : budgets) table.columns.push_back(std::to_string(budget));
  table.columns.insert(table.columns.end(), {"pass@n", "extraction", "tokens", "at cap", "tau"});
  const auto add = [&](const std::string& name, const std::vector<const PlannedEvaluation*>& done,
                       const std::string& tau, bool is_reference) {
    if (done.empty()) return;
    auto& row = table.rows.emplace_back();
    row.is_reference = is_reference;
    row.cells.push_back(stats::text_cell(name));
    for (const uint64_t budget : budgets)
      row.cells.push_back(spread_cell(measured(results, done, {}, budget), 2));
    for (const char* name_of : {"pass@n", "extraction", "length", "at_cap"}) {
      const auto measure = stats::parse_measure(name_of);
      row.cells.push_back(
          spread_cell(measured(results, done, measure, std::nullopt), measure.is_share() ? 1 : 0));
    }
    row.cells.push_back(stats::text_cell(tau));
  };
  for (const PlannedEvaluation& planned : results.plan().evaluations)
    if (planned.evaluation == e && !planned.run && results.is_done(planned))
      add(results.name_of(planned), {&planned}, "-", true);
  for (const Row& row : results.rows()) {
    std::vector<std::optional<uint64_t>> iterations(evaluation.iterations.begin(),
                                                    evaluation.iterations.end());
    if (iterations.empty()) iterations.push_back(std::nullopt);
    for (const auto& iteration : iterations)
      add(row.name + (iteration ? " behind " + std::to_string(*iteration) : ""),
          results.done_of(e, row.runs, iteration), tau_text(results, row), false);
  }
  return table;
}

// Ours and the paper's, column by column; of one benchmark only ours.
stats::Table paper_table(const Results& results, const TableConfig& config,
                         std::optional<size_t> benchmark = std::nullopt, const std::string& name = "") {
  const size_t e = index_of(results.study().evaluations, config.evaluation);
  stats::Table table{.id = config.label + (name.empty() ? "" : "-" + name),
                     .caption = config.label + (name.empty() ? "" : ", " + name),
                     .columns = {""}};
  for (const std::string& column : config.columns) {
    table.columns.push_back(column);
    if (!benchmark) table.columns.push_back("paper");
  }
  for (const TableRowConfig& row_config : config.rows) {
    const Row row = *find_row(results.study(), results.runs(), row_config.of);
    const auto done = results.done_of(e, row.runs, std::nullopt);
    auto& cells = table.rows.emplace_back().cells;
    cells.push_back(stats::text_cell(row_config.of));
    for (size_t c = 0; c < config.columns.size(); ++c) {
      const Column column = parse_column(config.columns[c]);
      const bool is_tau = column.measure == "tau";
      const auto measure = is_tau ? stats::Measure{} : stats::parse_measure(column.measure);
      if (is_tau)
        cells.push_back(stats::text_cell(tau_text(results, row)));
      else
        cells.push_back(
            spread_cell(measured(results, done, measure, column.budget, benchmark), decimals_of(measure)));
      if (!benchmark) cells.push_back(paper_cell(row_config.paper, c, decimals_of(measure)));
    }
  }
  return table;
}

void add_paper_tables(std::vector<stats::Table>& tables, const Results& results, const TableConfig& config) {
  tables.push_back(paper_table(results, config));
  if (!config.by_benchmark) return;
  const size_t e = index_of(results.study().evaluations, config.evaluation);
  for (const PlannedEvaluation& planned : results.plan().evaluations) {
    if (planned.evaluation != e || !results.is_done(planned)) continue;
    const auto& benchmarks = results.summary(planned).benchmarks;
    for (size_t b = 0; b < benchmarks.size(); ++b)
      tables.push_back(paper_table(results, config, b, benchmarks[b].name));
    return;
  }
}

// D/V of every iteration that was compared: 1 is what minibatch noise alone gives on average.
std::optional<stats::Table> trigger_table(const Results& results) {
  stats::Table table{.id = "trigger",
                     .caption =
                         "D/V by iteration up to tau (the trigger asks for D/V <= 1; pure minibatch "
                         "noise gives 1 on average)",
                     .columns = {"run", "tau"}};
  for (size_t r = 0; r < results.runs().size(); ++r) {
    const RunProgress& progress = results.plan().runs[r];
    if (!has_trigger(results.runs()[r]) || progress.states.size() < 2) continue;
    std::optional<FoundState> history;
    for (size_t k = progress.states.size(); k-- > 1 && !history;)
      history = results.store().find_history(progress.states[k]);
    if (!history) continue;
    auto& cells = table.rows.emplace_back().cells;
    cells = {stats::text_cell(results.runs()[r].label),
             stats::text_cell(progress.tau ? std::to_string(*progress.tau) : "none")};
    for (const IterationRecord& record : io::read_metrics(history->run / "metrics.jsonl").iterations) {
      if (record.iteration < 2 || (progress.tau && record.iteration > *progress.tau)) continue;
      while (table.columns.size() < record.iteration + 1)
        table.columns.push_back(std::to_string(table.columns.size()));
      while (cells.size() < record.iteration) cells.push_back(stats::text_cell("-"));
      const auto& ratio = record.trigger.ratio;
      cells.push_back(ratio ? stats::number_cell(*ratio, 2) : stats::text_cell("-"));
    }
  }
  return table.rows.empty() ? std::nullopt : std::optional(table);
}

stats::Table comparison_table(const Results& results) {
  stats::Table table{.id = "comparisons",
                     .caption =
                         "what the paper claims: points, tokens or nats; 95 % intervals over questions "
                         "and, with several orders, runs",
                     .columns = {"label", "comparison", "verdict", "here", "95 % interval", "paper"},
                     .num_label_columns = 3};
  for (const ComparisonConfig& comparison : results.study().comparisons) {
    const auto result = measure(results, comparison);
    const auto interval = result ? std::optional(result->effect.mean.interval) : std::nullopt;
    const int decimals = comparison.diagnosis.empty() || comparison.measure == "less_likely" ? 2 : 4;
    auto& cells = table.rows.emplace_back().cells;
    cells = {stats::text_cell(comparison.label), stats::text_cell(comparison_text(comparison)),
             stats::text_cell(comparison.paper ? verdict_text(judge(interval, *comparison.paper)) : "-")};
    cells.push_back(interval
                        ? stats::Cell{.value = interval->estimate, .decimals = decimals, .is_signed = true}
                        : stats::text_cell("-"));
    cells.push_back(stats::text_cell(
        interval ? fmt::format("[{:+.{}f}, {:+.{}f}]", interval->low, decimals, interval->high, decimals)
                 : "-"));
    cells.push_back(comparison.paper
                        ? stats::Cell{.value = *comparison.paper, .decimals = decimals, .is_signed = true}
                        : stats::text_cell("-"));
  }
  return table;
}

std::optional<stats::Table> benchmark_table(const Results& results) {
  stats::Table table{.id = "by-benchmark",
                     .caption = "the same by benchmark, and the ratio of lengths at the largest budget",
                     .columns = {"comparison", "benchmark", "here", "95 % interval", "length ratio"},
                     .num_label_columns = 2};
  for (const ComparisonConfig& comparison : results.study().comparisons) {
    if (!comparison.by_benchmark) continue;
    const auto result = measure(results, comparison);
    if (!result) continue;
    for (size_t b = 0; b < result->benchmarks.size(); ++b) {
      const stats::Interval& interval = result->effect.benchmarks[b].interval;
      table.rows.push_back(
          {{stats::text_cell(comparison.label + ": " + comparison_text(comparison)),
            stats::text_cell(result->benchmarks[b]),
            {.value = interval.estimate, .decimals = 2, .is_signed = true},
            stats::text_cell(fmt::format("[{:+.2f}, {:+.2f}]", interval.low, interval.high)),
            b < result->length_ratios.size() ? stats::number_cell(result->length_ratios[b], 2)
                                             : stats::text_cell("-")}});
    }
  }
  return table.rows.empty() ? std::nullopt : std::optional(table);
}

Json comparison_json(const Results& results, const ComparisonConfig& comparison) {
  const auto result = measure(results, comparison);
  const auto interval = result ? std::optional(result->effect.mean.interval) : std::nullopt;
  Json line = {{"label", comparison.label}, {"comparison", comparison_text(comparison)}};
  if (comparison.paper) line["paper"] = *comparison.paper;
  if (interval) line["measured"] = {interval->estimate, interval->low, interval->high};
  if (comparison.paper) line["verdict"] = verdict_text(judge(interval, *comparison.paper));
  return line;
}

}  // namespace

stats::Cell spread_cell(const std::vector<double>& values, int decimals) {
  if (values.empty()) return stats::text_cell("-");
  const auto spread = stats::mean_and_deviation(values);
  stats::Cell cell = stats::number_cell(spread.mean, decimals);
  if (spread.count > 1) cell.deviation = spread.deviation;
  return cell;
}

stats::Cell paper_cell(const std::vector<std::optional<double>>& paper, size_t column, int decimals) {
  if (column >= paper.size() || !paper[column]) return stats::text_cell("-");
  return stats::number_cell(*paper[column], decimals);
}

std::vector<stats::Table> study_tables(const Results& results) {
  std::vector<stats::Table> tables;
  for (size_t e = 0; e < results.study().evaluations.size(); ++e)
    tables.push_back(evaluation_table(results, e));
  for (const TableConfig& config : results.study().tables) add_paper_tables(tables, results, config);
  if (auto trigger = trigger_table(results)) tables.push_back(std::move(*trigger));
  for (size_t d = 0; d < results.study().diagnoses.size(); ++d)
    for (stats::Table& table : diagnosis_tables(results, d)) tables.push_back(std::move(table));
  if (!results.study().comparisons.empty()) tables.push_back(comparison_table(results));
  if (auto benchmarks = benchmark_table(results)) tables.push_back(std::move(*benchmarks));
  return tables;
}

std::string study_results_json(const Results& results) {
  Json runs = Json::array();
  for (size_t r = 0; r < results.runs().size(); ++r) {
    const RunProgress& progress = results.plan().runs[r];
    runs.push_back({{"label", results.runs()[r].label},
                    {"method", results.study().methods[results.runs()[r].method].name},
                    {"values", results.runs()[r].values},
                    {"tau", progress.tau ? Json(*progress.tau) : Json(nullptr)},
                    {"complete", progress.is_complete}});
  }
  Json evaluations = Json::array();
  for (const PlannedEvaluation& planned : results.plan().evaluations) {
    if (!results.is_done(planned)) continue;
    const Path path = results.store().evaluation(planned.id) / "summary.json";
    evaluations.push_back({{"evaluation", results.study().evaluations[planned.evaluation].name},
                           {"of", results.name_of(planned)},
                           {"iteration", planned.iteration},
                           {"folder", results.store().evaluation(planned.id).string()},
                           {"budgets", parse_json(read_file(path), path.string()).at("budgets")}});
  }
  Json comparisons = Json::array();
  for (const ComparisonConfig& comparison : results.study().comparisons)
    comparisons.push_back(comparison_json(results, comparison));
  return Json{{"study", results.study().name},
              {"runs", runs},
              {"evaluations", evaluations},
              {"comparisons", comparisons}}
             .dump(1) +
         "\n";
}

}  // namespace ropd::study
