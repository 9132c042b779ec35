#include <algorithm>
#include <cmath>
#include <string_view>

#include "report/figures.h"
#include "report/html.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxTriggerCharts = 4;

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

// One curve a method over iterations.
struct TrainingCurve {
  const char* id;
  const char* title;
  const char* label;
  const char* caption;
  double (*value)(const IterationRecord&);
  bool from_zero = true;
};

constexpr TrainingCurve kTrainingCurves[] = {
    {"training-loss", "Loss", "loss", "Mean over the iteration’s updates, under the configured reduction.",
     [](const IterationRecord& r) { return r.loss; }, false},
    {"gradient-norm", "Gradient norm", "global norm before clipping",
     "Mean over the iteration’s updates. It falls as the student agrees with the teacher on the states "
     "trained on.",
     [](const IterationRecord& r) { return r.grad_norm; }},
    {"response-length", "Response length", "mean tokens per response",
     "Length of the responses trained on. Where a method turns to replay, the batch holds the initial "
     "student’s stored "
     "responses and the curve returns to their length.",
     [](const IterationRecord& r) { return r.response_length_mean; }},
    {"truncation", "Truncated responses", "responses cut at the limit, %",
     "Share of the batch that reached the limit without an end token. A steep rise means that the student is "
     "unlearning "
     "to stop.",
     [](const IterationRecord& r) { return 100 * r.truncated; }},
    {"training-kl", "Disagreement with the teacher", "reverse KL, nats per token",
     "Reverse KL over the student’s candidates on the states trained on. Values on different sources are not "
     "comparable: "
     "replayed states are the initial student’s.",
     [](const IterationRecord& r) { return r.distillation.kl_candidates; }},
    {"student-mass", "Student probability inside its candidates", "mean over tokens, %",
     "What the objective sees of the student: 100 % would be the whole vocabulary.",
     [](const IterationRecord& r) { return 100 * r.distillation.student_mass; }, false},
    {"teacher-mass", "Teacher probability inside the candidates", "mean over tokens, %",
     "How much of the teacher’s opinion lies on the student’s candidates. Where it is low, the objective "
     "sees little of "
     "the teacher.",
     [](const IterationRecord& r) { return 100 * r.distillation.teacher_mass; }, false},
    {"entropy", "Entropy of the student", "nats per token",
     "Over the full vocabulary, on the states trained on.",
     [](const IterationRecord& r) { return r.distillation.entropy; }}};

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

}  // namespace

FigureGroup training_figures(const Comparison& comparison) {
  FigureGroup group{.heading = "Training",
                    .introduction =
                        "One point is one iteration: a batch of responses, scored once, used for a few "
                        "updates. Mean over runs."};
  for (const TrainingCurve& curve : kTrainingCurves) {
    LineChart chart = iteration_chart(curve.id, curve.title, curve.label, curves(comparison, curve.value));
    if (curve.from_zero) chart.y.low = 0.0;
    chart.y.is_share = std::string_view(curve.label).ends_with(", %");
    const bool is_recorded = std::any_of(chart.series.begin(), chart.series.end(), [](const Series& series) {
      return std::any_of(series.y.begin(), series.y.end(), [](double y) { return y != 0; });
    });
    // A truncation of zero throughout is a finding; a mass of zero was not recorded.
    if (!chart.series.empty() && (is_recorded || curve.id == std::string("truncation")))
      group.figures.push_back({std::move(chart), curve.caption});
  }
  return group;
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

}  // namespace ropd::report
