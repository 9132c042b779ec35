#include "study/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "stats/answer_metrics.h"
#include "stats/evaluation.h"

namespace ropd::study {
namespace {

constexpr uint64_t kBootstrapSeed = 20260906;  // the paper's

using Grid = std::vector<std::vector<std::string>>;

// Characters, not bytes: cells hold ± and Greek letters.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string aligned(const Grid& grid) {
  std::vector<size_t> widths;
  for (const auto& row : grid)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  std::string text;
  for (const auto& row : grid) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += (i ? "  " : "") + (i ? space + row[i] : row[i] + space);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string spread(const std::vector<double>& values, int decimals) {
  if (values.empty()) return "-";
  const auto s = stats::mean_and_deviation(values);
  std::string text = fmt::format("{:.{}f}", s.mean, decimals);
  if (s.count > 1) text += fmt::format(" ± {:.{}f}", s.deviation, decimals);
  return text;
}

class Tables {
 public:
  Tables(const StudyFile& file, const std::vector<Run>& runs, const Plan& plan, const Store& store)
      : study_(file.config), runs_(runs), plan_(plan), store_(store), rows_(rows_of(file.config, runs)) {}

  std::string text() {
    std::string result;
    for (size_t e = 0; e < study_.evaluations.size(); ++e) result += accuracy_table(e) + "\n";
    for (size_t d = 0; d < study_.diagnoses.size(); ++d) result += kl_table(d) + "\n";
    if (!study_.comparisons.empty()) result += comparison_table();
    return result;
  }

  Json json() {
    Json runs = Json::array();
    for (size_t r = 0; r < runs_.size(); ++r)
      runs.push_back({{"label", runs_[r].label},
                      {"method", study_.methods[runs_[r].method].name},
                      {"values", runs_[r].values},
                      {"tau", plan_.runs[r].tau ? Json(*plan_.runs[r].tau) : Json(nullptr)},
                      {"complete", plan_.runs[r].is_complete}});
    Json evaluations = Json::array();
    for (const PlannedEvaluation& planned : plan_.evaluations) {
      if (!is_done(planned)) continue;
      evaluations.push_back({{"evaluation", study_.evaluations[planned.evaluation].name},
                             {"of", name_of(planned)},
                             {"iteration", planned.iteration},
                             {"folder", store_.evaluation(planned.id).string()},
                             {"budgets", summary_of(planned).at("budgets")}});
    }
    Json comparisons = Json::array();
    for (const ComparisonConfig& comparison : study_.comparisons) {
      const auto measured = difference(comparison);
      Json line = {{"label", comparison.label}, {"better", comparison.better}, {"worse", comparison.worse}};
      if (comparison.paper) line["paper"] = *comparison.paper;
      if (measured) line["measured"] = {measured->estimate, measured->low, measured->high};
      if (comparison.paper) line["verdict"] = verdict_text(judge(measured, *comparison.paper));
      comparisons.push_back(line);
    }
    return {
        {"study", study_.name}, {"runs", runs}, {"evaluations", evaluations}, {"comparisons", comparisons}};
  }

 private:
  const StudyConfig& study_;
  const std::vector<Run>& runs_;
  const Plan& plan_;
  const Store& store_;
  const std::vector<Row> rows_;

  bool is_done(const PlannedEvaluation& planned) const {
    return std::filesystem::exists(store_.evaluation(planned.id) / "summary.json");
  }
  std::string name_of(const PlannedEvaluation& planned) const {
    return planned.run ? runs_[*planned.run].label : planned.is_teacher ? "teacher" : "initial student";
  }
  Json summary_of(const PlannedEvaluation& planned) const {
    const Path path = store_.evaluation(planned.id) / "summary.json";
    return parse_json(read_file(path), path.string());
  }

  // Evaluations e of these runs behind an iteration, those that are done.
  std::vector<const PlannedEvaluation*> done_of(size_t e, const std::vector<size_t>& runs,
                                                std::optional<uint64_t> iteration) const {
    std::vector<const PlannedEvaluation*> found;
    for (const PlannedEvaluation& planned : plan_.evaluations) {
      if (planned.evaluation != e || !planned.run || !is_done(planned)) continue;
      if (std::find(runs.begin(), runs.end(), *planned.run) == runs.end()) continue;
      if (iteration && planned.iteration != *iteration) continue;
      found.push_back(&planned);
    }
    return found;
  }

  void add_row(Grid& grid, const std::string& name, const std::vector<const PlannedEvaluation*>& done,
               const std::string& tau) const {
    if (done.empty()) return;
    std::vector<Json> summaries;
    for (const PlannedEvaluation* planned : done) summaries.push_back(summary_of(*planned));
    const auto column = [&](size_t budget, const char* key, double scale) {
      std::vector<double> values;
      for (const Json& summary : summaries)
        values.push_back(scale * summary.at("budgets").at(budget).at(key).get<double>());
      return values;
    };
    auto& row = grid.emplace_back(1, name);
    const size_t budgets = summaries.front().at("budgets").size();
    for (size_t b = 0; b < budgets; ++b) row.push_back(spread(column(b, "accuracy", 100), 2));
    row.push_back(spread(column(budgets - 1, "pass_at_n", 100), 1));
    row.push_back(spread(column(budgets - 1, "extraction", 100), 1));
    row.push_back(spread(column(budgets - 1, "length", 1), 0));
    row.push_back(spread(column(budgets - 1, "at_cap", 100), 1));
    row.push_back(tau);
  }

  std::string tau_of(const Row& row) const {
    std::string text;
    bool has_trigger = false;
    std::vector<double> values;
    for (const size_t r : row.runs) {
      for (const auto& stage : train::make_stages(runs_[r].config)) has_trigger |= stage.until_trigger;
      if (plan_.runs[r].tau) values.push_back(static_cast<double>(*plan_.runs[r].tau));
      text += (text.empty() ? "" : ", ") +
              (plan_.runs[r].tau ? std::to_string(*plan_.runs[r].tau)
                                 : std::string(plan_.runs[r].is_complete ? "none" : "not known"));
    }
    if (!has_trigger) return "-";
    return values.size() > 1 ? text + " (" + spread(values, 2) + ")" : text;
  }

  std::string accuracy_table(size_t e) const {
    const EvaluationConfig& evaluation = study_.evaluations[e];
    Grid grid(1, {evaluation.name + ", accuracy %"});
    auto budgets = evaluation.budgets;
    if (budgets.empty()) budgets.push_back(evaluation.max_tokens);
    std::sort(budgets.begin(), budgets.end());
    for (const uint64_t budget : budgets) grid[0].push_back(std::to_string(budget));
    grid[0].insert(grid[0].end(), {"pass@n", "extraction", "tokens", "at cap", "tau"});
    for (const PlannedEvaluation& planned : plan_.evaluations)
      if (planned.evaluation == e && !planned.run && is_done(planned))
        add_row(grid, name_of(planned), {&planned}, "-");
    for (const Row& row : rows_) {
      std::vector<std::optional<uint64_t>> iterations(evaluation.iterations.begin(),
                                                      evaluation.iterations.end());
      if (iterations.empty()) iterations.push_back(std::nullopt);
      for (const auto& iteration : iterations)
        add_row(grid, row.name + (iteration ? " behind " + std::to_string(*iteration) : ""),
                done_of(e, row.runs, iteration), tau_of(row));
    }
    return aligned(grid);
  }

  std::string kl_table(size_t d) const {
    const DiagnosisConfig& diagnosis = study_.diagnoses[d];
    Grid grid(1, {diagnosis.name + ", KL"});
    for (const auto& source : diagnosis.sources) grid[0].push_back(source.name);
    for (const auto& source : diagnosis.sources) grid[0].push_back(source.name + " less likely, %");
    for (size_t i = 0; i < diagnosis.students.size(); ++i) {
      auto& row = grid.emplace_back(1, diagnosis.students[i].name);
      for (const char* key : {"kl", "less_likely"})
        for (size_t j = 0; j < diagnosis.sources.size(); ++j) {
          std::vector<double> values;
          for (const PlannedDiagnosis& planned : plan_.diagnoses) {
            if (planned.diagnosis != d || planned.source != j || planned.student != i) continue;
            const Path path = store_.diagnosis(planned.id);
            if (!std::filesystem::exists(path)) continue;
            const Json cell = parse_json(read_file(path), path.string());
            if (cell.contains(key)) values.push_back(cell.at(key).get<double>() * (key[0] == 'l' ? 100 : 1));
          }
          row.push_back(spread(values, key[0] == 'l' ? 2 : 4));
        }
    }
    return aligned(grid);
  }

  // Accuracy per question in points, a run each; nothing when one is missing.
  std::optional<std::vector<stats::RunValues>> side(const std::string& name, size_t e,
                                                    std::optional<uint64_t> budget) const {
    const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.name == name; });
    if (row == rows_.end())
      fail("study: comparison side \"", name, "\" names no row; rows are ", row_names());
    std::vector<stats::RunValues> runs;
    for (const size_t r : row->runs) {
      const auto done = done_of(e, {r}, runs_[r].config.train.iterations);
      if (done.empty()) return std::nullopt;
      const auto summary = stats::read_summary(store_.evaluation(done.front()->id));
      runs.push_back(summary.values({}, budget ? static_cast<uint32_t>(*budget) : summary.budgets.back()));
      for (auto& benchmark : runs.back())
        for (double& value : benchmark.values) value *= 100;
    }
    return runs;
  }

  std::string row_names() const {
    std::string names;
    for (const Row& row : rows_) names += (names.empty() ? "" : ", ") + row.name;
    return names;
  }

  std::optional<stats::Interval> difference(const ComparisonConfig& comparison) const {
    size_t e = 0;
    while (study_.evaluations[e].name != comparison.evaluation) ++e;
    const auto better = side(comparison.better, e, comparison.budget),
               worse = side(comparison.worse, e, comparison.budget);
    if (!better || !worse) return std::nullopt;
    // Runs of one order share their data: they are compared with each other.
    const bool is_paired = better->size() > 1;
    auto contrast = stats::difference(*better, *worse, is_paired);
    if (comparison.at) {
      const auto at = side(*comparison.at, e, comparison.budget),
                 minus = side(*comparison.minus, e, comparison.budget);
      if (!at || !minus) return std::nullopt;
      contrast = stats::interaction(*better, *worse, *at, *minus, is_paired);
    }
    return stats::bootstrap(std::span(&contrast, 1), {.seed = kBootstrapSeed}).front().mean.interval;
  }

  std::string comparison_table() const {
    Grid grid(1, {"comparison (points)", "here", "95 % interval", "paper", "verdict"});
    for (const ComparisonConfig& comparison : study_.comparisons) {
      const auto measured = difference(comparison);
      std::string name = comparison.label + ": " + comparison.better + " - " + comparison.worse;
      if (comparison.at) name += " - (" + *comparison.at + " - " + *comparison.minus + ")";
      if (comparison.budget) name += " at " + std::to_string(*comparison.budget);
      grid.push_back({name, measured ? fmt::format("{:+.2f}", measured->estimate) : "-",
                      measured ? fmt::format("[{:+.2f}, {:+.2f}]", measured->low, measured->high) : "-",
                      comparison.paper ? fmt::format("{:+.2f}", *comparison.paper) : "-",
                      comparison.paper ? verdict_text(judge(measured, *comparison.paper)) : "-"});
    }
    return aligned(grid);
  }
};

}  // namespace

Verdict judge(const std::optional<stats::Interval>& measured, double paper) {
  if (!measured) return Verdict::not_measured;
  const double sign = paper < 0 ? -1 : 1;
  if (sign * measured->estimate <= 0) return Verdict::opposite;
  return measured->low * measured->high > 0 ? Verdict::same_and_significant : Verdict::same_sign;
}

std::string verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::same_and_significant:
      return "same sign and significant";
    case Verdict::same_sign:
      return "same sign, not significant";
    case Verdict::opposite:
      return "opposite";
    case Verdict::not_measured:
      break;
  }
  return "not measured";
}

std::vector<Row> rows_of(const StudyConfig& config, const std::vector<Run>& runs) {
  std::vector<Row> rows;
  for (size_t r = 0; r < runs.size(); ++r) {
    std::string name = config.methods[runs[r].method].name;
    for (size_t a = 0; a < config.axes.size(); ++a)
      if (!config.axes[a].repeats) name += "@" + runs[r].values[a];
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Row& known) { return known.name == name; });
    if (row == rows.end())
      rows.push_back({name, {r}});
    else
      row->runs.push_back(r);
  }
  return rows;
}

std::string study_tables(const StudyFile& file, const std::vector<Run>& runs, const Plan& plan,
                         const Store& store) {
  return Tables(file, runs, plan, store).text();
}

std::string study_results_json(const StudyFile& file, const std::vector<Run>& runs, const Plan& plan,
                               const Store& store) {
  return Tables(file, runs, plan, store).json().dump(1) + "\n";
}

}  // namespace ropd::study
