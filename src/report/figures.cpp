#include "report/figures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "report/html.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxBenchmarkCharts = 12;

const stats::Measure kAccuracy{};

std::vector<std::pair<double, std::string>> budget_ticks(const std::vector<int64_t>& budgets) {
  std::vector<std::pair<double, std::string>> ticks;
  for (const int64_t budget : budgets) ticks.emplace_back(static_cast<double>(budget), budget_name(budget));
  return ticks;
}

// Of one measure over budgets, a line per method; bars of one SD where there are several runs.
std::vector<Series> budget_series(const Comparison& comparison, const ResultSet& set,
                                  const stats::Measure& measure, std::optional<size_t> benchmark) {
  std::vector<Series> all;
  for (size_t m = 0; m < set.methods.size(); ++m) {
    if (!set.methods[m].is_present()) continue;
    Series series{.name = comparison.methods[m].label, .style = comparison.methods[m].style};
    for (const int64_t budget : set.budgets) {
      const Spread value = set.methods[m].at(measure, budget, benchmark);
      series.x.push_back(static_cast<double>(budget));
      series.y.push_back(measure.scale() * value.mean);
      const double deviation = value.count > 1 ? value.deviation : NAN;
      series.low.push_back(measure.scale() * (value.mean - deviation));
      series.high.push_back(measure.scale() * (value.mean + deviation));
    }
    if (std::none_of(series.low.begin(), series.low.end(), [](double v) { return std::isfinite(v); }))
      series.low = series.high = {};
    all.push_back(std::move(series));
  }
  return all;
}

Figure budget_figure(const Comparison& comparison, const ResultSet& set, const stats::Measure& measure,
                     const std::string& id, const std::string& title, const std::string& caption,
                     std::optional<size_t> benchmark = {}) {
  LineChart chart{
      .id = id,
      .title = title,
      .description = "Mean " + measure.heading() + ", when every response is cut to its first n tokens.",
      .x = {.label = "tokens kept of each response", .ticks = budget_ticks(set.budgets)},
      .y = {.label = measure.heading(), .is_share = measure.is_share()},
      .series = budget_series(comparison, set, measure, benchmark)};
  const bool has_bars =
      std::any_of(chart.series.begin(), chart.series.end(), [](const Series& s) { return !s.low.empty(); });
  return {chart, caption + (has_bars ? " Bars: ± 1 sample SD over runs." : "")};
}

Figure accuracy_against_length(const Comparison& comparison, const ResultSet& set, const std::string& id) {
  LineChart chart{.id = id,
                  .title = "Accuracy against response length",
                  .description = "Mean accuracy in per cent over mean retained tokens, one point a budget.",
                  .x = {.label = "mean retained tokens"},
                  .y = {.label = "accuracy, %", .is_share = true}};
  for (size_t m = 0; m < set.methods.size(); ++m) {
    if (!set.methods[m].is_present()) continue;
    Series series{.name = comparison.methods[m].label, .style = comparison.methods[m].style};
    for (const int64_t budget : set.budgets) {
      series.x.push_back(set.methods[m].at({stats::Measure::Kind::length}, budget).mean);
      series.y.push_back(100 * set.methods[m].at(kAccuracy, budget).mean);
    }
    series.label_index = series.x.size() - 1;
    chart.series.push_back(std::move(series));
  }
  return {chart,
          "One point a budget, from the shortest to the longest. Up and to the left is better: more right "
          "answers for "
          "fewer tokens."};
}

// Accuracy of the responses of each length, all benchmarks together.
Figure accuracy_by_length(const Comparison& comparison, const ResultSet& set, const std::string& id) {
  LineChart chart{
      .id = id,
      .title = "Accuracy by response length",
      .description = "Share of right responses among those of each length, at the longest budget.",
      .x = {.label = "length of the response, tokens (lower end of its bin)"},
      .y = {.label = "right among them, %", .is_share = true, .low = 0.0}};
  for (size_t m = 0; m < set.methods.size(); ++m) {
    std::map<uint32_t, std::pair<double, double>> bins;  // begin -> right, responses
    for (const stats::EvaluationSummary* run : set.methods[m].runs)
      for (const auto& benchmark : run->benchmarks)
        for (const stats::LengthBin& bin : benchmark.by_length.back()) {
          bins[bin.begin_tokens].first += bin.accuracy * static_cast<double>(bin.num_responses);
          bins[bin.begin_tokens].second += static_cast<double>(bin.num_responses);
        }
    Series series{.name = comparison.methods[m].label, .style = comparison.methods[m].style};
    for (const auto& [begin, count] : bins) {
      series.x.push_back(begin);
      series.y.push_back(100 * count.first / count.second);
    }
    if (series.x.size() > 1) chart.series.push_back(std::move(series));
  }
  return {
      chart,
      "Long responses are the hard questions or those that lost their way; bins double from 512 tokens on."};
}

Figure pass_at_k(const Comparison& comparison, const ResultSet& set, const std::string& id) {
  LineChart chart{
      .id = id,
      .title = "pass@k",
      .description = "Share of questions with at least one right response among k, longest budget.",
      .x = {.label = "k", .is_logarithmic = true},
      .y = {.label = "pass@k, %", .is_share = true}};
  for (size_t m = 0; m < set.methods.size(); ++m) {
    std::map<uint32_t, std::vector<double>> values;
    size_t num_curves = 0;
    for (const stats::EvaluationSummary* run : set.methods[m].runs)
      for (const auto& benchmark : run->benchmarks) {
        ++num_curves;
        for (const stats::PassAtK& point : benchmark.pass_at_k.back()) values[point.k].push_back(point.value);
      }
    Series series{.name = comparison.methods[m].label, .style = comparison.methods[m].style};
    for (const auto& [k, of_k] : values) {
      if (of_k.size() != num_curves) continue;  // not every benchmark has this many responses
      series.x.push_back(k);
      series.y.push_back(100 * spread(of_k).mean);
    }
    for (const double k : series.x)
      if (std::none_of(chart.x.ticks.begin(), chart.x.ticks.end(),
                       [&](const auto& tick) { return tick.first == k; }))
        chart.x.ticks.emplace_back(k, format_brief(k));
    if (series.x.size() > 1) chart.series.push_back(std::move(series));
  }
  std::sort(chart.x.ticks.begin(), chart.x.ticks.end());
  return {chart, "Unbiased for a draw of k out of the responses to a question, mean over benchmarks."};
}

constexpr stats::Measure::Kind kCategories[] = {
    stats::Measure::Kind::extracted, stats::Measure::Kind::extracted_at_cap,
    stats::Measure::Kind::unextracted, stats::Measure::Kind::unextracted_at_cap};

Figure categories(const Comparison& comparison, const ResultSet& set, const std::string& id,
                  const std::string& title, std::optional<size_t> benchmark) {
  BarChart chart{
      .id = id,
      .title = title,
      .description = "Per cent of responses with and without an extracted answer, ended or at the cap.",
      .axis_label = "% of responses at " + budget_name(set.budgets.back()) + " tokens",
      .parts = {"answer, ended", "answer, at cap", "no answer, ended", "no answer, at cap"},
      .scale = 100,
      .full = 1.0};
  for (size_t m = 0; m < set.methods.size(); ++m) {
    if (!set.methods[m].is_present()) continue;
    BarRow row{comparison.methods[m].label, {}, comparison.methods[m].style};
    for (const auto kind : kCategories)
      row.values.push_back(set.methods[m].at({kind}, set.budgets.back(), benchmark).mean);
    if (std::isfinite(row.values[0])) chart.rows.push_back(std::move(row));
  }
  return {chart,
          benchmark
              ? "As above, of this benchmark alone."
              : "An answer counts as extracted when a complete \\boxed{} is found. “At cap”: the response "
                "reached the limit. Equal mean over benchmarks."};
}

Figure accuracy_over_training(const Comparison& comparison, const ResultSet& set, const std::string& id) {
  LineChart chart{
      .id = id,
      .title = "Accuracy over training",
      .description = "Mean accuracy in per cent after each evaluated optimization step, longest budget.",
      .x = {.label = "optimization step", .is_integer = true, .low = 0.0},
      .y = {.label = "accuracy, %", .is_share = true}};
  for (size_t m = 0; m < set.methods.size(); ++m) {
    std::map<uint64_t, std::vector<double>> by_step;
    for (const EvaluationData* evaluation : set.methods[m].history)
      by_step[*evaluation->step].push_back(
          stats::suite_mean(evaluation->summary.values(kAccuracy, evaluation->summary.budgets.back())));
    Series series{.name = comparison.methods[m].label, .style = comparison.methods[m].style};
    for (const auto& [step, values] : by_step) {
      const Spread value = spread(values);
      series.x.push_back(static_cast<double>(step));
      series.y.push_back(100 * value.mean);
    }
    if (series.x.size() > 1) chart.series.push_back(std::move(series));
    if (comparison.methods[m].is_reference && set.methods[m].is_present() && chart.lines.size() < 4)
      chart.lines.push_back({.at = 100 * set.methods[m].at(kAccuracy, set.budgets.back()).mean,
                             .label = shorten(comparison.methods[m].label, 18),
                             .is_vertical = false,
                             .style = -1});
  }
  return {chart, "Evaluations made while training (eval.every), mean over runs."};
}

bool has_data(const Figure& figure) {
  return std::visit(
      [](const auto& chart) {
        if constexpr (requires { chart.rows; })
          return !chart.rows.empty();
        else
          return !chart.series.empty();
      },
      figure.chart);
}

}  // namespace

FigureGroup result_figures(const Comparison& comparison, size_t set_index) {
  const ResultSet& set = comparison.results[set_index];
  const std::string end = set_index == 0 ? "" : "-" + std::to_string(set_index + 1);
  FigureGroup group{.heading = "Accuracy" + (comparison.results.size() > 1 ? ": " + set.name : "")};
  std::vector<Figure> figures = {
      budget_figure(comparison, set, kAccuracy, "accuracy-by-budget" + end, "Accuracy by budget",
                    "The same responses, cut to a budget and graded again. Lines that cross mean that the "
                    "better method "
                    "depends on the budget."),
      accuracy_against_length(comparison, set, "accuracy-against-length" + end),
      accuracy_over_training(comparison, set, "accuracy-over-training" + end),
      budget_figure(comparison, set, {stats::Measure::Kind::length}, "length-by-budget" + end,
                    "Length by budget", "Mean tokens that are kept of a response."),
      accuracy_by_length(comparison, set, "accuracy-by-length" + end),
      pass_at_k(comparison, set, "pass-at-k" + end),
      categories(comparison, set, "response-categories" + end, "Response categories", {})};
  if (set.benchmarks.size() > 1)
    for (size_t b = 0; b < std::min(set.benchmarks.size(), kMaxBenchmarkCharts); ++b) {
      const std::string number = std::to_string(b + 1);
      figures.push_back(budget_figure(comparison, set, kAccuracy, "benchmark-" + number + end,
                                      "Accuracy by budget: " + set.benchmarks[b], "This benchmark alone.",
                                      b));
      figures.push_back(categories(comparison, set, "categories-" + number + end,
                                   "Response categories: " + set.benchmarks[b], b));
    }
  for (Figure& figure : figures)
    if (has_data(figure)) group.figures.push_back(std::move(figure));
  return group;
}

LineChart difference_chart(std::span<const stats::EffectCurve> curves) {
  const stats::EffectCurve& first = curves.front();
  const double scale = first.measure.scale();
  LineChart chart{
      .id = slug("difference " + first.measure.name()),
      .title = "Difference: " + first.measure.heading(),
      .description = "Difference by budget with 95 % intervals.",
      .x = {.label = "tokens kept of each response",
            .ticks = budget_ticks({first.budgets.begin(), first.budgets.end()})},
      .y = {.label = "difference, " + std::string(first.measure.is_share() ? "points" : "tokens")},
      .lines = {{.at = 0, .label = "no difference", .is_vertical = false, .style = -1}}};
  for (const stats::EffectCurve& curve : curves) {
    Series series{.name = curve.title, .style = static_cast<int>(chart.series.size())};
    for (size_t i = 0; i < curve.budgets.size(); ++i) {
      const stats::Interval& interval = curve.effects[i].mean.interval;
      series.x.push_back(curve.budgets[i]);
      series.y.push_back(scale * interval.estimate);
      series.low.push_back(scale * interval.low);
      series.high.push_back(scale * interval.high);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::vector<FigureGroup> make_figures(const Comparison& comparison) {
  std::vector<FigureGroup> groups;
  for (size_t i = 0; i < comparison.results.size(); ++i) groups.push_back(result_figures(comparison, i));
  groups.push_back(training_figures(comparison));
  groups.push_back(trigger_figures(comparison));
  groups.push_back(prefix_figures(comparison));
  for (FigureGroup& group : diagnosis_figures(comparison)) groups.push_back(std::move(group));
  std::erase_if(groups, [](const FigureGroup& group) { return group.figures.empty(); });
  return groups;
}

}  // namespace ropd::report
