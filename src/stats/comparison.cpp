#include "stats/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/error.h"

namespace ropd::stats {
namespace {

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%g %%", 100 * share);
  return text;
}

// [methods][runs] values of a measure, on the benchmarks where every run has it.
std::vector<std::vector<RunValues>> values_of(std::span<const Method> methods, const Measure& measure,
                                              uint32_t budget) {
  std::vector<std::vector<RunValues>> values;
  std::vector<std::string> common;
  for (const Method& method : methods) {
    auto& runs = values.emplace_back();
    for (const EvaluationSummary& run : method.runs) {
      runs.push_back(run.values(measure, budget));
      std::vector<std::string> names;
      for (const BenchmarkValues& benchmark : runs.back())
        if (&method == &methods.front() && runs.size() == 1
                ? true
                : std::find(common.begin(), common.end(), benchmark.name) != common.end())
          names.push_back(benchmark.name);
      common = std::move(names);
    }
  }
  if (common.empty()) fail("compare: the evaluations have no benchmark in common for ", measure.name());
  for (auto& runs : values)
    for (RunValues& run : runs)
      std::erase_if(run, [&](const BenchmarkValues& benchmark) {
        return std::find(common.begin(), common.end(), benchmark.name) == common.end();
      });
  return values;
}

Cell effect_cell(const Effect& effect, const Measure& measure, const std::string& mark) {
  const double scale = measure.scale();
  const Interval scaled{scale * effect.interval.estimate, scale * effect.interval.low,
                        scale * effect.interval.high};
  return {.value = scaled.estimate,
          .interval = scaled,
          .decimals = measure.is_share() ? 2 : 1,
          .is_signed = true,
          .mark = mark};
}

bool excludes_zero(const Interval& interval) { return interval.low > 0 || interval.high < 0; }

std::string runs_text(const EffectCurve& curve) {
  const bool are_equal = std::equal(curve.num_runs.begin() + 1, curve.num_runs.end(), curve.num_runs.begin());
  std::string text;
  for (const size_t count : curve.num_runs) {
    text += (text.empty() ? "" : " and ") + std::to_string(count);
    if (are_equal) break;
  }
  return text;
}

size_t budget_index(const EffectCurve& curve, uint32_t budget) {
  return size_t(std::find(curve.budgets.begin(), curve.budgets.end(), budget) - curve.budgets.begin());
}

void add_notes(Table& table, std::span<const EffectCurve> curves, size_t num_comparisons, double coverage) {
  std::set<std::string> seen;
  for (const EffectCurve& curve : curves)
    if (const std::string note = interval_note(curve, coverage); seen.insert(note).second)
      table.notes.push_back(note);
  table.notes.push_back(comparisons_note(num_comparisons, coverage));
}

}  // namespace

std::string budget_name(uint64_t tokens) {
  return tokens >= 1024 && tokens % 1024 == 0 ? std::to_string(tokens / 1024) + "K" : std::to_string(tokens);
}

Question difference_of(std::span<const Method> methods, size_t left, size_t right) {
  return {methods[left].label + " - " + methods[right].label, {{left, 1.0}, {right, -1.0}}};
}

Question interaction_of(std::span<const Method> methods, size_t a, size_t b, size_t c, size_t d) {
  return {"(" + methods[a].label + " - " + methods[b].label + ") - (" + methods[c].label + " - " +
              methods[d].label + ")",
          {{a, 1.0}, {b, -1.0}, {c, -1.0}, {d, 1.0}}};
}

std::vector<std::string> check_comparable(std::span<const Method> methods) {
  std::vector<std::string> differences;
  const EvaluationSummary& first = methods.front().runs.front();
  for (const Method& method : methods)
    for (const EvaluationSummary& run : method.runs) {
      check_same_questions(first, run);
      for (std::string& difference : different_settings(first, run))
        differences.push_back(std::move(difference));
    }
  return differences;
}

std::vector<uint32_t> common_budgets(std::span<const Method> methods) {
  std::vector<uint32_t> budgets = methods.front().runs.front().budgets;
  for (const Method& method : methods)
    for (const EvaluationSummary& run : method.runs)
      std::erase_if(budgets, [&](uint32_t budget) { return !run.has_budget(budget); });
  if (budgets.empty())
    fail(
        "compare: the evaluations have no budget in common (`ropd eval --rescore --budgets LIST` scores the "
        "saved "
        "responses at every budget of LIST, in place of the present ones)");
  return budgets;
}

void align_orders(std::vector<Method>& methods) {
  const std::vector<std::string> wanted = methods.front().orders;
  if (std::set<std::string>(wanted.begin(), wanted.end()).size() != wanted.size()) return;
  for (Method& method : methods) {
    if (method.orders == wanted ||
        !std::is_permutation(wanted.begin(), wanted.end(), method.orders.begin(), method.orders.end()))
      continue;
    std::vector<EvaluationSummary> sorted;
    for (const std::string& order : wanted)
      sorted.push_back(method.runs[size_t(std::find(method.orders.begin(), method.orders.end(), order) -
                                          method.orders.begin())]);
    method.runs = std::move(sorted);
    method.orders = wanted;
  }
}

Pairing pairing_of(std::span<const Method> methods, const Question& question) {
  const Method& first = methods[question.terms.front().first];
  bool is_known = true;
  for (const auto& [index, weight] : question.terms) {
    const Method& method = methods[index];
    if (method.runs.size() != first.runs.size()) return Pairing::none;
    is_known &=
        !method.orders.empty() && std::none_of(method.orders.begin(), method.orders.end(),
                                               [](const std::string& order) { return order.empty(); });
  }
  if (!is_known) return Pairing::by_position;
  for (const auto& [index, weight] : question.terms)
    if (methods[index].orders != first.orders) return Pairing::none;
  return Pairing::by_order;
}

std::vector<EffectCurve> answer(std::span<const Method> methods, std::span<const Question> questions,
                                std::span<const Measure> measures, std::span<const uint32_t> budgets,
                                const BootstrapConfig& config) {
  std::vector<EffectCurve> curves;
  for (const Measure& measure : measures) {
    const size_t first_curve = curves.size();
    for (const Question& question : questions) {
      EffectCurve& curve = curves.emplace_back();
      curve.title = question.title;
      curve.measure = measure;
      curve.budgets.assign(budgets.begin(), budgets.end());
      curve.pairing = pairing_of(methods, question);
      for (const auto& [index, weight] : question.terms) curve.num_runs.push_back(methods[index].runs.size());
    }
    for (const uint32_t budget : budgets) {
      const auto values = values_of(methods, measure, budget);
      std::vector<Contrast> contrasts;
      for (size_t i = 0; i < questions.size(); ++i) {
        std::vector<std::vector<RunValues>> groups;
        std::vector<double> weights;
        for (const auto& [index, weight] : questions[i].terms) {
          groups.push_back(values[index]);
          weights.push_back(weight);
        }
        contrasts.push_back(weighted_sum(groups, weights, curves[first_curve + i].pairing != Pairing::none));
      }
      const auto effects = bootstrap(contrasts, config);
      for (size_t i = 0; i < questions.size(); ++i) {
        EffectCurve& curve = curves[first_curve + i];
        curve.effects.push_back(effects[i]);
        curve.over_runs.push_back(mean_and_deviation(run_effects(contrasts[i])));
        curve.benchmarks.clear();
        for (const BenchmarkValues& benchmark : values[0][0]) curve.benchmarks.push_back(benchmark.name);
      }
    }
  }
  return curves;
}

Table method_table(std::span<const Method> methods, const Measure& measure,
                   std::span<const uint32_t> budgets) {
  Table table{.id = "results-" + measure.name(),
              .caption = "Mean over benchmarks at each budget of tokens: " + measure.heading(),
              .columns = {"method", "runs"}};
  for (const uint32_t budget : budgets) table.columns.push_back(budget_name(budget));
  bool has_spread = false;
  for (const Method& method : methods) {
    TableRow row{.cells = {text_cell(method.label), number_cell(double(method.runs.size()), 0)}};
    for (const uint32_t budget : budgets) {
      std::vector<double> values;
      const auto runs = values_of(std::span(&method, 1), measure, budget)[0];
      for (const RunValues& run : runs) values.push_back(measure.scale() * suite_mean(run));
      const MeanDeviation spread = mean_and_deviation(values);
      Cell cell = number_cell(spread.mean, measure.is_share() ? 2 : 1);
      if (spread.count > 1) cell.deviation = spread.deviation;
      has_spread |= spread.count > 1;
      row.cells.push_back(cell);
    }
    table.rows.push_back(std::move(row));
  }
  if (has_spread) table.notes.push_back("± sample standard deviation over runs");
  return table;
}

std::vector<std::string> significance_marks(std::span<const Effect> effects, double coverage) {
  std::vector<double> p;
  for (const Effect& effect : effects) p.push_back(effect.p);
  const auto adjusted = holm(p);
  std::vector<std::string> marks;
  for (size_t i = 0; i < effects.size(); ++i)
    marks.push_back(!excludes_zero(effects[i].interval) ? "" : adjusted[i] < 1 - coverage ? "**" : "*");
  return marks;
}

std::string comparisons_note(size_t num_comparisons, double coverage) {
  const std::string meaning = "* the interval excludes zero";
  if (num_comparisons < 2) return meaning;
  char chance[32];
  std::snprintf(chance, sizeof chance, "%.1f", (1 - coverage) * double(num_comparisons));
  return std::to_string(num_comparisons) + " comparisons in this table: " + chance +
         " would exclude zero by chance alone if nothing differed. " + meaning +
         "; ** also after Holm's correction over the table.";
}

std::string interval_note(const EffectCurve& curve, double coverage) {
  const bool is_single = *std::max_element(curve.num_runs.begin(), curve.num_runs.end()) == 1;
  if (is_single)
    return "1 run of each method: " + percent_text(coverage) +
           " intervals over questions only; another run may differ by more.";
  const bool includes_runs = *std::min_element(curve.num_runs.begin(), curve.num_runs.end()) > 1;
  std::string text = runs_text(curve) + " runs, ";
  text += curve.pairing == Pairing::by_order ? "paired by data order"
          : curve.pairing == Pairing::by_position
              ? "paired in the order given (their data orders are not known)"
              : "not paired";
  text += ": " + percent_text(coverage) + " intervals over questions" +
          (includes_runs ? " and runs." : " only; a method with one run says nothing of other runs.");
  if (includes_runs && *std::min_element(curve.num_runs.begin(), curve.num_runs.end()) == 2)
    text += " With two runs an interval may cover as little as 87 % instead of 95 %.";
  return text;
}

Table curve_table(std::span<const EffectCurve> curves, const BootstrapConfig& config) {
  const EffectCurve& first = curves.front();
  Table table{.id = "differences-" + first.measure.name(),
              .caption = "Difference at each budget of tokens: " + first.measure.heading() +
                         (first.measure.is_share() ? " (points)" : ""),
              .columns = {"difference", "runs"}};
  std::vector<Effect> effects;
  for (const uint32_t budget : first.budgets) table.columns.push_back(budget_name(budget));
  for (const EffectCurve& curve : curves)
    for (const SuiteEffect& effect : curve.effects) effects.push_back(effect.mean);
  const auto marks = significance_marks(effects, config.coverage);
  size_t next = 0;
  for (const EffectCurve& curve : curves) {
    TableRow row{.cells = {text_cell(curve.title), text_cell(runs_text(curve))}};
    for (const SuiteEffect& effect : curve.effects)
      row.cells.push_back(effect_cell(effect.mean, curve.measure, marks[next++]));
    table.rows.push_back(std::move(row));
  }
  add_notes(table, curves, effects.size(), config.coverage);
  return table;
}

Table benchmark_table(std::span<const EffectCurve> curves, uint32_t budget, const BootstrapConfig& config) {
  const EffectCurve& first = curves.front();
  Table table{.id = "benchmarks-" + first.measure.name(),
              .caption = "By benchmark at " + budget_name(budget) + " tokens: " + first.measure.heading() +
                         (first.measure.is_share() ? " (points)" : ""),
              .columns = {"difference", "benchmark", "questions and runs", "questions, these runs"},
              .num_label_columns = 2};
  std::vector<Effect> effects;
  for (const EffectCurve& curve : curves) {
    const SuiteEffect& suite = curve.effects[budget_index(curve, budget)];
    effects.insert(effects.end(), suite.benchmarks.begin(), suite.benchmarks.end());
    effects.push_back(suite.mean);
  }
  const auto marks = significance_marks(effects, config.coverage);
  size_t next = 0;
  for (const EffectCurve& curve : curves)
    for (size_t b = 0; b <= curve.benchmarks.size(); ++b, ++next) {
      Effect questions = effects[next];
      questions.interval = questions.questions;
      table.rows.push_back({.cells = {text_cell(b == 0 ? curve.title : ""),
                                      text_cell(b < curve.benchmarks.size() ? curve.benchmarks[b] : "mean"),
                                      effect_cell(effects[next], curve.measure, marks[next]),
                                      effect_cell(questions, curve.measure, "")}});
    }
  add_notes(table, curves, effects.size(), config.coverage);
  return table;
}

Table measure_table(std::span<const EffectCurve> curves, uint32_t budget, const BootstrapConfig& config) {
  Table table{.id = "measures",
              .caption = "Every measure at " + budget_name(budget) +
                         " tokens; differences in points of % or in tokens",
              .columns = {"measure"}};
  std::vector<Effect> effects;
  for (const EffectCurve& curve : curves) {
    effects.push_back(curve.effects[budget_index(curve, budget)].mean);
    if (std::find(table.columns.begin() + 1, table.columns.end(), curve.title) == table.columns.end())
      table.columns.push_back(curve.title);
  }
  const auto marks = significance_marks(effects, config.coverage);
  for (size_t i = 0; i < curves.size(); ++i) {
    const std::string name = curves[i].measure.heading();
    if (table.rows.empty() || table.rows.back().cells[0].text != name)
      table.rows.push_back({.cells = {text_cell(name)}});
    table.rows.back().cells.push_back(effect_cell(effects[i], curves[i].measure, marks[i]));
  }
  add_notes(table, curves, effects.size(), config.coverage);
  return table;
}

}  // namespace ropd::stats
