// Which figures a report has and what each one says. A figure without data is left out. The live page draws the
// same ones (make_figures reads records only and is cheap enough for that).
#pragma once
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "report/chart.h"
#include "report/methods.h"
#include "stats/comparison.h"

namespace ropd::report {

struct Figure {
  std::variant<LineChart, BarChart> chart;
  std::string caption;  // what to see, one or two sentences
};

struct FigureGroup {
  std::string heading;
  std::string introduction = {};
  std::vector<Figure> figures = {};
};

// Results of every set of questions, training, trigger, prefixes and diagnoses.
std::vector<FigureGroup> make_figures(const Comparison& comparison);

// The parts of it. Ids of a second set of questions end in -2.
FigureGroup result_figures(const Comparison& comparison, size_t set_index);
FigureGroup training_figures(const Comparison& comparison);
FigureGroup trigger_figures(const Comparison& comparison);
FigureGroup prefix_figures(const Comparison& comparison);
std::vector<FigureGroup> diagnosis_figures(const Comparison& comparison);

// The difference curves of one measure over budgets, with their intervals.
LineChart difference_chart(std::span<const stats::EffectCurve> curves);

using stats::budget_name;

}  // namespace ropd::report
