// Which figures a report has and what each one says. A figure without data is left out.
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

std::vector<FigureGroup> make_figures(const Comparison& comparison);

// The difference curves of one measure over budgets, with their intervals.
LineChart difference_chart(std::span<const stats::EffectCurve> curves);

using stats::budget_name;

}  // namespace ropd::report
