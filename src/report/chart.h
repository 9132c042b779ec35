// Small charts as inline SVG: lines with direct labels, scatter points, horizontal stacked bars. Colours and
// dashes come from CSS classes (report/style.h), so one drawing serves light, dark and print. Every drawing
// carries role="img", a title and a description, and every mark a <title> with its numbers. Pure functions of
// the chart; no fonts are measured, widths are estimated.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ropd::report {

// Drawn in the order given. A value that is not finite breaks the line.
struct Series {
  std::string name;
  std::vector<double> x = {}, y = {};       // [n]
  std::vector<double> low = {}, high = {};  // [n] error bars; empty = none
  int style = 0;                            // colour, dash and marker; 0..7
  bool has_line = true;
  bool has_markers = true;
  std::optional<size_t> label_index = {};  // the point that bears the name; default: the last one
};

struct ReferenceLine {
  double at = 0;
  std::string label;
  bool is_vertical = false;
  int style = -1;  // -1 = neutral
};

struct Axis {
  std::string label;
  bool is_logarithmic = false;
  bool is_integer = false;                                 // ticks at whole numbers only
  bool is_share = false;                                   // in per cent: the axis ends at 0 and 100
  std::optional<double> low = {}, high = {};               // default: from the data, widened to round numbers
  std::vector<std::pair<double, std::string>> ticks = {};  // default: round numbers
};

struct LineChart {
  std::string id;  // a slug: file name and element id
  std::string title;
  std::string description;  // what a reader who cannot see it should know; the numbers are appended
  Axis x, y;
  std::vector<Series> series = {};
  std::vector<ReferenceLine> lines = {};
};

struct BarRow {
  std::string name;
  std::vector<double> values;  // [parts]
  int style = 0;               // used when there is one part
};

struct BarChart {
  std::string id, title, description;
  std::string axis_label;
  std::vector<std::string> parts;  // one = plain bars coloured by row; several = stacked, coloured by part
  std::vector<BarRow> rows = {};
  double scale = 1;                 // the axis shows value * scale (100 for per cent)
  int decimals = 1;                 // of the numbers written at the bars
  std::optional<double> full = {};  // stacked bars end here
};

std::string to_svg(const LineChart& chart);
std::string to_svg(const BarChart& chart);

// Round numbers that cover low..high, about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace ropd::report
