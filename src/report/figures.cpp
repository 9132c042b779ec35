#include "report/figures.h"

#include <algorithm>
#include <cmath>

#include "report/html.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxTriggerCharts = 4;
constexpr size_t kMaxCurvePoints = 400;

std::vector<std::pair<double, std::string>> budget_ticks(const std::vector<int64_t>& budgets) {
  std::vector<std::pair<double, std::string>> ticks;
  for (const int64_t budget : budgets) ticks.emplace_back(static_cast<double>(budget), budget_name(budget));
  return ticks;
}

Figure accuracy_by_budget(const Comparison& comparison) {
  LineChart chart{
      .id = "accuracy-by-budget",
      .title = "Accuracy by budget",
      .description = "Mean accuracy in per cent when every response is cut to its first n tokens.",
      .x = {.label = "tokens kept of each response", .ticks = budget_ticks(comparison.budgets)},
      .y = {.label = "accuracy, %"}};
  for (const Method& method : comparison.methods) {
    if (!method.has_evaluation) continue;
    Series series{.name = method.label, .style = method.style};
    const bool has_spread = method.accuracy.back().count > 1;
    for (size_t i = 0; i < comparison.budgets.size(); ++i) {
      const Spread& accuracy = method.accuracy[i];
      series.x.push_back(static_cast<double>(comparison.budgets[i]));
      series.y.push_back(100 * accuracy.mean);
      if (!has_spread) continue;
      series.low.push_back(100 * (accuracy.mean - accuracy.deviation));
      series.high.push_back(100 * (accuracy.mean + accuracy.deviation));
    }
    chart.series.push_back(std::move(series));
  }
  const bool has_bars =
      std::any_of(chart.series.begin(), chart.series.end(), [](const Series& s) { return !s.low.empty(); });
  return {chart, std::string("The same responses, cut to a budget and graded again. Lines that cross mean "
                             "that the better method "
                             "depends on the budget.") +
                     (has_bars ? " Bars: ± 1 SD over runs." : "")};
}

Figure accuracy_against_length(const Comparison& comparison) {
  const std::string budget = budget_name(comparison.budgets.back());
  LineChart chart{
      .id = "accuracy-against-length",
      .title = "Accuracy against response length",
      .description = "Mean accuracy in per cent at " + budget + " tokens over mean response length.",
      .x = {.label = "mean response length, tokens"},
      .y = {.label = "accuracy at " + budget + " tokens, %"}};
  for (const Method& method : comparison.methods)
    if (method.has_evaluation)
      chart.series.push_back({.name = method.label,
                              .x = {method.length.mean},
                              .y = {100 * method.accuracy.back().mean},
                              .style = method.style,
                              .has_line = false});
  return {chart, "Up and to the left is better: more right answers for fewer tokens."};
}

Figure categories(const Comparison& comparison) {
  BarChart chart{
      .id = "response-categories",
      .title = "Response categories",
      .description = "Per cent of responses with and without an extracted answer, ended or at the cap.",
      .axis_label = "% of responses at " + budget_name(comparison.budgets.back()) + " tokens",
      .parts = {kCategoryNames.begin(), kCategoryNames.end()},
      .scale = 100,
      .full = 1.0};
  for (const Method& method : comparison.methods)
    if (method.has_evaluation)
      chart.rows.push_back(
          {method.label, {method.categories.begin(), method.categories.end()}, method.style});
  return {chart,
          "An answer counts as extracted when a complete \\boxed{} is found. “At cap”: the response reached "
          "the limit."};
}

std::vector<Series> curves(const Comparison& comparison, double (*value)(const IterationRecord&)) {
  std::vector<Series> all;
  for (const Method& method : comparison.methods) {
    if (method.is_reference) continue;
    const Curve curve = mean_curve(method, value);
    if (std::none_of(curve.value.begin(), curve.value.end(), [](double v) { return std::isfinite(v); }))
      continue;
    all.push_back({.name = method.label,
                   .x = curve.iteration,
                   .y = curve.value,
                   .style = method.style,
                   .has_markers = curve.iteration.size() <= 40});
  }
  return all;
}

LineChart iteration_chart(const std::string& id, const std::string& title, const std::string& y_label,
                          std::vector<Series> series) {
  return {.id = id,
          .title = title,
          .description = title + " by iteration.",
          .x = {.label = "iteration", .is_integer = true, .low = 1.0},
          .y = {.label = y_label},
          .series = std::move(series)};
}

double length_of(const IterationRecord& r) { return r.response_length_mean; }
double truncation_of(const IterationRecord& r) { return 100 * r.truncated; }
double kl_of(const IterationRecord& r) { return r.distillation.kl_candidates; }

FigureGroup training_figures(const Comparison& comparison) {
  FigureGroup group{
      .heading = "Training",
      .introduction =
          "One point is one iteration: a batch of responses, scored once, used for a few updates."};
  auto length = iteration_chart("response-length", "Response length", "mean tokens per response",
                                curves(comparison, length_of));
  length.y.low = 0.0;
  if (!length.series.empty())
    group.figures.push_back({length,
                             "Length of the responses trained on. Where a method turns to replay, the batch "
                             "holds the initial student’s "
                             "stored responses and the curve returns to their length."});
  auto truncation = iteration_chart("truncation", "Truncated responses", "responses cut at the limit, %",
                                    curves(comparison, truncation_of));
  truncation.y.low = 0.0;
  if (!truncation.series.empty())
    group.figures.push_back({truncation,
                             "Share of the batch that reached the limit without an end token. A steep rise "
                             "means that the student "
                             "is unlearning to stop."});
  auto kl = iteration_chart("training-kl", "Disagreement with the teacher", "reverse KL, nats per token",
                            curves(comparison, kl_of));
  kl.y.low = 0.0;
  if (!kl.series.empty())
    group.figures.push_back({kl,
                             "Reverse KL over the student’s candidates on the states trained on. Values on "
                             "different sources are not "
                             "comparable: replayed states are the initial student’s."});
  return group;
}

struct TriggerTrace {
  std::vector<double> iteration, distance, noise, ratio;
};

TriggerTrace trace_of(const RunData& run) {
  TriggerTrace trace;
  for (const IterationRecord& record : run.iterations) {
    if (!record.trigger.distance || !record.trigger.noise) continue;
    trace.iteration.push_back(static_cast<double>(record.iteration));
    trace.distance.push_back(*record.trigger.distance);
    trace.noise.push_back(*record.trigger.noise);
    trace.ratio.push_back(record.trigger.ratio.value_or(NAN));
  }
  return trace;
}

bool begins_with(const std::vector<double>& longer, const std::vector<double>& shorter) {
  return shorter.size() <= longer.size() && std::equal(shorter.begin(), shorter.end(), longer.begin());
}

std::string run_name(const Method& method, size_t index) {
  return method.runs.size() == 1 ? method.label : method.label + " " + std::to_string(index + 1);
}

// Runs that branch off one another share the beginning of their traces: only the longest of such a family is
// drawn, with the tau of each.
struct TracedRun {
  std::string name;
  int style = 0;
  TriggerTrace trace;
  std::vector<std::pair<std::string, double>> taus;
};

std::vector<TracedRun> traced_runs(const Comparison& comparison) {
  std::vector<TracedRun> all;
  for (const Method& method : comparison.methods)
    for (size_t i = 0; i < method.runs.size(); ++i) {
      TracedRun traced{run_name(method, i), method.style, trace_of(*method.runs[i]), {}};
      if (traced.trace.iteration.empty()) continue;
      if (const auto tau = method.runs[i]->tau())
        traced.taus.emplace_back(traced.name, static_cast<double>(*tau));
      const auto family = std::find_if(all.begin(), all.end(), [&](const TracedRun& other) {
        return begins_with(other.trace.ratio, traced.trace.ratio) ||
               begins_with(traced.trace.ratio, other.trace.ratio);
      });
      if (family == all.end()) {
        all.push_back(std::move(traced));
        continue;
      }
      family->taus.insert(family->taus.end(), traced.taus.begin(), traced.taus.end());
      if (traced.trace.ratio.size() > family->trace.ratio.size()) {
        traced.taus = family->taus;
        *family = std::move(traced);
      }
    }
  return all;
}

std::vector<ReferenceLine> tau_lines(const TracedRun& run) {
  std::vector<ReferenceLine> lines;
  for (const auto& [name, tau] : run.taus) {
    const std::string label = "τ = " + format_brief(tau) + (name == run.name ? "" : " (" + name + ")");
    lines.push_back({.at = tau, .label = label, .is_vertical = true, .style = -1});
  }
  return lines;
}

FigureGroup trigger_figures(const Comparison& comparison) {
  FigureGroup group{.heading = "The trigger",
                    .introduction =
                        "D is the squared change of the mean gradient between two iterations, V the change "
                        "that minibatch noise "
                        "alone would give: without any movement E[D] = V. Two comparisons in a row with D ≤ "
                        "V set τ; replay begins after it."};
  const auto runs = traced_runs(comparison);
  if (runs.empty()) return group;
  auto ratio = iteration_chart("trigger-ratio", "D / V", "D / V", {});
  ratio.lines.push_back({.at = 1, .label = "E[D] = V", .is_vertical = false, .style = -1});
  ratio.y.low = 0.0;
  for (const TracedRun& run : runs) {
    const int style = runs.size() == 1 ? run.style : static_cast<int>(ratio.series.size());
    if (ratio.series.size() < 8)
      ratio.series.push_back(
          {.name = run.name, .x = run.trace.iteration, .y = run.trace.ratio, .style = style});
    if (runs.size() > 1) continue;
    for (const ReferenceLine& line : tau_lines(run)) ratio.lines.push_back(line);
  }
  group.figures.push_back({ratio,
                           "The dotted line is what noise alone gives on average; at or below it a "
                           "comparison qualifies. A curve that wanders around "
                           "1 from the start carries "
                           "little information: the trigger is then close to a coin toss."});
  for (size_t i = 0; i < runs.size() && i < kMaxTriggerCharts; ++i) {
    const TracedRun& run = runs[i];
    auto chart = iteration_chart("trigger-" + std::to_string(i + 1), "D and V: " + run.name,
                                 "squared gradient norm", {});
    const auto [least, most] = std::minmax_element(run.trace.distance.begin(), run.trace.distance.end());
    chart.y.is_logarithmic = *least > 0 && *most > 30 * *least;
    if (!chart.y.is_logarithmic) chart.y.low = 0.0;
    chart.series.push_back({.name = "D", .x = run.trace.iteration, .y = run.trace.distance, .style = 0});
    chart.series.push_back({.name = "V", .x = run.trace.iteration, .y = run.trace.noise, .style = 1});
    chart.lines = tau_lines(run);
    group.figures.push_back(
        {chart, run.taus.empty() ? "The trigger did not fire in this run."
                                 : "The vertical line marks τ, the iteration after which replay begins."});
  }
  return group;
}

FigureGroup prefix_figures(const Comparison& comparison) {
  FigureGroup group{.heading = "Fixed prefixes of the initial student",
                    .introduction =
                        "The same stored prefixes, seen by every endpoint: how far it still is from the "
                        "teacher there, and how "
                        "likely it would be to write them itself."};
  BarChart kl{.id = "prefix-kl",
              .title = "KL on initial prefixes",
              .description = "Mean reverse KL to the teacher on fixed prefixes of the initial student.",
              .axis_label = "reverse KL to the teacher, nats per position",
              .parts = {"KL"},
              .decimals = 3};
  LineChart likelihood{
      .id = "prefix-likelihood",
      .title = "Likelihood of initial prefixes",
      .description =
          "Cumulative share of prefixes by the change of their log-likelihood since the initial student.",
      .x = {.label = "change of log-likelihood, nats"},
      .y = {.label = "share of prefixes at or below, %", .low = 0.0, .high = 100.0},
      .series = {},
      .lines = {{.at = 0, .label = "unchanged", .is_vertical = true, .style = -1}}};
  for (const Method& method : comparison.methods) {
    std::vector<double> values;
    const PrefixResult* shown = nullptr;
    for (const RunData* run : method.runs) {
      if (!run->prefixes) continue;
      if (run->prefixes->kl) values.push_back(*run->prefixes->kl);
      if (!shown && !run->prefixes->cumulative.empty()) shown = &*run->prefixes;
    }
    if (!values.empty()) kl.rows.push_back({method.label, {spread(values).mean}, method.style});
    if (!shown) continue;
    Series series{.name = method.label, .style = method.style, .has_markers = false};
    const size_t stride = shown->cumulative.size() / kMaxCurvePoints + 1;
    for (size_t i = 0; i < shown->cumulative.size(); ++i) {
      if (i % stride != 0 && i + 1 != shown->cumulative.size()) continue;
      series.x.push_back(shown->cumulative[i].first);
      series.y.push_back(100 * shown->cumulative[i].second);
    }
    // The curves meet at both ends: each is named at a height of its own on the way.
    const double height = 25 + 50.0 * static_cast<double>(likelihood.series.size() % 4) / 3;
    series.label_index = std::lower_bound(series.y.begin(), series.y.end(), height) - series.y.begin();
    likelihood.series.push_back(std::move(series));
  }
  if (!kl.rows.empty())
    group.figures.push_back({kl,
                             "Shorter is closer to the teacher. What current-policy training leaves here is "
                             "what replay can still use."});
  if (!likelihood.series.empty())
    group.figures.push_back(
        {likelihood,
         "The further a curve lies to the left, the less the student would still write these prefixes: they "
         "leave its own distribution while disagreement with the teacher remains."});
  return group;
}

}  // namespace

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
  if (!comparison.budgets.empty())
    groups.push_back({.heading = "Accuracy",
                      .introduction = "",
                      .figures = {accuracy_by_budget(comparison), accuracy_against_length(comparison),
                                  categories(comparison)}});
  for (FigureGroup group :
       {training_figures(comparison), trigger_figures(comparison), prefix_figures(comparison)})
    if (!group.figures.empty()) groups.push_back(std::move(group));
  return groups;
}

}  // namespace ropd::report
