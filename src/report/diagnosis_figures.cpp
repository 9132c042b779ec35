#include <algorithm>
#include <cmath>

#include "report/figures.h"
#include "report/html.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxCurvePoints = 400;

// A cumulative share in per cent, thinned; named at a height of its own, because the curves meet at both ends.
Series cumulative_series(const std::string& name, int style, size_t number,
                         const std::vector<std::pair<double, double>>& cumulative) {
  Series series{.name = name, .style = style, .has_markers = false};
  const size_t stride = cumulative.size() / kMaxCurvePoints + 1;
  for (size_t i = 0; i < cumulative.size(); ++i) {
    if (i % stride != 0 && i + 1 != cumulative.size()) continue;
    series.x.push_back(cumulative[i].first);
    series.y.push_back(100 * cumulative[i].second);
  }
  const double height = 25 + 50.0 * static_cast<double>(number % 4) / 3;
  series.label_index =
      static_cast<size_t>(std::lower_bound(series.y.begin(), series.y.end(), height) - series.y.begin());
  return series;
}

LineChart likelihood_chart(const std::string& id, const std::string& title) {
  return {.id = id,
          .title = title,
          .description = "Cumulative share of prefixes by the change of their log-likelihood.",
          .x = {.label = "change of log-likelihood, nats"},
          .y = {.label = "share of prefixes at or below, %", .low = 0.0, .high = 100.0},
          .series = {},
          .lines = {{.at = 0, .label = "unchanged", .is_vertical = true, .style = -1}}};
}

// One bar a student for each source.
Figure kl_figure(const DiagnosisData& diagnosis, size_t source, const std::string& id) {
  BarChart chart{.id = id,
                 .title = "KL on prefixes of " + diagnosis.sources[source],
                 .description = "Mean reverse KL to the teacher on fixed prefixes.",
                 .axis_label = "reverse KL to the teacher, nats per position",
                 .parts = {"KL"},
                 .decimals = 3};
  for (size_t i = 0; i < diagnosis.students.size(); ++i)
    if (std::isfinite(diagnosis.kl[i][source]))
      chart.rows.push_back({diagnosis.students[i], {diagnosis.kl[i][source]}, static_cast<int>(i)});
  return {chart, "Shorter is closer to the teacher on these states."};
}

FigureGroup figures_of(const DiagnosisData& diagnosis, size_t number) {
  const std::string end = number == 0 ? "" : "-" + std::to_string(number + 1);
  FigureGroup group{
      .heading = "Diagnosis: " + diagnosis.label,
      .introduction = "The same stored prefixes of each source, seen by every student (ropd diagnose)."};
  for (size_t j = 0; j < diagnosis.sources.size(); ++j)
    group.figures.push_back(kl_figure(diagnosis, j, "diagnosis-kl-" + std::to_string(j + 1) + end));
  for (size_t j = 0; j < diagnosis.sources.size(); ++j) {
    auto chart = likelihood_chart("diagnosis-likelihood-" + std::to_string(j + 1) + end,
                                  "Likelihood of prefixes of " + diagnosis.sources[j]);
    for (const LikelihoodChange& change : diagnosis.likelihood)
      if (change.source == diagnosis.sources[j] && !change.cumulative.empty() && chart.series.size() < 8)
        chart.series.push_back(cumulative_series(change.to, static_cast<int>(chart.series.size()),
                                                 chart.series.size(), change.cumulative));
    if (!chart.series.empty())
      group.figures.push_back(
          {chart, "Change since " + (diagnosis.students.empty() ? "" : diagnosis.students[0]) +
                      ". The further a curve lies to the left, the less the student would still write "
                      "these prefixes."});
  }
  std::erase_if(group.figures, [](const Figure& figure) {
    const auto* bars = std::get_if<BarChart>(&figure.chart);
    return bars && bars->rows.empty();
  });
  return group;
}

}  // namespace

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
  LineChart likelihood = likelihood_chart("prefix-likelihood", "Likelihood of initial prefixes");
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
    likelihood.series.push_back(
        cumulative_series(method.label, method.style, likelihood.series.size(), shown->cumulative));
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

std::vector<FigureGroup> diagnosis_figures(const Comparison& comparison) {
  std::vector<FigureGroup> groups;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs)
      if (run->diagnosis) groups.push_back(figures_of(*run->diagnosis, groups.size()));
  return groups;
}

}  // namespace ropd::report
