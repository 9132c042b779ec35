// Which figures a report has and what each one says. A figure without data is left out.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "report/chart.h"
#include "report/methods.h"

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

// 512, 4K, 32K.
std::string budget_name(int64_t tokens);

}  // namespace ropd::report
