#include "report/chart_files.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "report/style.h"
#include "stats/table.h"

namespace ropd::report {
namespace {

using stats::csv_number;

using stats::csv_field;

// gnuplot interprets nothing between single quotes except a doubled quote; line ends would end the command.
std::string gnuplot_text(std::string text) {
  std::string out = "'";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += c == '\'' ? "''" : std::string(1, c);
  }
  return out + "'";
}

double at(const std::vector<double>& values, size_t index) {
  return index < values.size() ? values[index] : NAN;
}

std::string ticks_command(const char* axis, const Axis& description) {
  if (description.ticks.empty()) return "";
  std::string command = std::string("set ") + axis + "tics (";
  for (size_t i = 0; i < description.ticks.size(); ++i)
    command += (i ? ", " : "") + gnuplot_text(description.ticks[i].second) + " " +
               csv_number(description.ticks[i].first);
  return command + ")\n";
}

std::string gnuplot_head(const std::string& id, const std::string& title) {
  return "# Run in this folder: gnuplot " + id +
         ".gp\nset terminal svg size 640,400 noenhanced\nset output '" + id +
         ".gnuplot.svg'\nset datafile separator comma\nset encoding utf8\nset title " + gnuplot_text(title) +
         "\n";
}

void write_files(const Path& directory, const std::string& id, std::string svg, const std::string& csv,
                 const std::string& script) {
  // A drawing on its own has no page around it: it carries the sheet and the light colours itself.
  const std::string style = std::string("<style>svg {") + kLightColours + " background: var(--page); }" +
                            kChartStyle + "</style>\n";
  svg.insert(svg.find(">\n") + 2, style);
  std::filesystem::create_directories(directory);
  write_file_atomically(directory / (id + ".svg"), svg + "\n");
  write_file_atomically(directory / (id + ".csv"), csv);
  write_file_atomically(directory / (id + ".gp"), script);
}

}  // namespace

std::string to_csv(const LineChart& chart) {
  std::string csv = "series_index,series,x,y,low,high\n";
  for (size_t s = 0; s < chart.series.size(); ++s) {
    const Series& series = chart.series[s];
    for (size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i)
      csv += std::to_string(s) + "," + csv_field(series.name) + "," + csv_number(series.x[i]) + "," +
             csv_number(series.y[i]) + "," + csv_number(at(series.low, i)) + "," +
             csv_number(at(series.high, i)) + "\n";
  }
  return csv;
}

std::string to_csv(const BarChart& chart) {
  std::string csv = "row_index,row,part_index,part,value\n";
  for (size_t r = 0; r < chart.rows.size(); ++r)
    for (size_t p = 0; p < std::min(chart.parts.size(), chart.rows[r].values.size()); ++p)
      csv += std::to_string(r) + "," + csv_field(chart.rows[r].name) + "," + std::to_string(p) + "," +
             csv_field(chart.parts[p]) + "," + csv_number(chart.rows[r].values[p]) + "\n";
  return csv;
}

std::string to_gnuplot(const LineChart& chart) {
  std::string script = gnuplot_head(chart.id, chart.title) + "set xlabel " + gnuplot_text(chart.x.label) +
                       "\nset ylabel " + gnuplot_text(chart.y.label) +
                       "\nset key outside right\nset grid ytics\n";
  if (chart.x.is_logarithmic) script += "set logscale x\n";
  if (chart.y.is_logarithmic) script += "set logscale y\n";
  script += ticks_command("x", chart.x) + ticks_command("y", chart.y);
  for (const ReferenceLine& line : chart.lines) {
    const std::string place = csv_number(line.at);
    script +=
        line.is_vertical
            ? "set arrow from first " + place + ", graph 0 to first " + place + ", graph 1 nohead dashtype 3"
            : "set arrow from graph 0, first " + place + " to graph 1, first " + place + " nohead dashtype 3";
    script += "  # " + gnuplot_text(line.label) + "\n";
  }
  std::string plots;
  for (size_t s = 0; s < chart.series.size(); ++s) {
    const Series& series = chart.series[s];
    const std::string columns = "(column(1) == " + std::to_string(s) + " ? column(3) : NaN)";
    const char* look = !series.has_line ? "points" : series.has_markers ? "linespoints" : "lines";
    const std::string number = std::to_string(series.style + 1);
    plots += (plots.empty() ? "plot " : ", \\\n     ") + ("'" + chart.id + ".csv' using " + columns) +
             ":4 skip 1 with " + look + " linetype " + number + " dashtype " + number + " title " +
             gnuplot_text(series.name);
    if (!series.low.empty())
      plots += ", \\\n     '" + chart.id + ".csv' using " + columns +
               ":4:5:6 skip 1 with yerrorbars linetype " + number + " notitle";
  }
  return script + plots + "\n";
}

std::string to_gnuplot(const BarChart& chart) {
  std::string script = gnuplot_head(chart.id, chart.title) + "set xlabel " + gnuplot_text(chart.axis_label) +
                       "\nset style fill solid 0.8\nset key outside right\nset yrange [" +
                       std::to_string(chart.rows.size()) + " - 0.5 : -0.5]\nset ytics (";
  for (size_t r = 0; r < chart.rows.size(); ++r)
    script += (r ? ", " : "") + gnuplot_text(chart.rows[r].name) + " " + std::to_string(r);
  script += ")\n";
  // Stacked boxes: each part is drawn from the sum of the parts before it.
  std::string plots;
  for (size_t p = 0; p < chart.parts.size(); ++p) {
    std::string boxes;
    for (size_t r = 0; r < chart.rows.size(); ++r) {
      double before = 0;
      for (size_t q = 0; q < p && q < chart.rows[r].values.size(); ++q) before += chart.rows[r].values[q];
      boxes += csv_number(before * chart.scale) + " ";
    }
    script += "offset" + std::to_string(p) + " = '" + boxes + "'\n";
    const std::string mine = "(column(3) == " + std::to_string(p) + " ? column(1) : NaN)";
    const std::string from = "real(word(offset" + std::to_string(p) + ", int(column(1)) + 1))";
    const std::string to = from + " + column(5) * " + csv_number(chart.scale);
    plots += (plots.empty() ? "plot " : ", \\\n     ") +
             ("'" + chart.id + ".csv' using (" + from + "):" + mine + ":(" + from + "):(" + to +
              "):(column(1) - 0.35):(column(1) + 0.35) skip 1 with boxxyerror linetype " +
              std::to_string(p + 1) + " title ") +
             gnuplot_text(chart.parts[p]);
  }
  return script + plots + "\n";
}

void write_chart_files(const Path& directory, const LineChart& chart) {
  write_files(directory, chart.id, to_svg(chart), to_csv(chart), to_gnuplot(chart));
}

void write_chart_files(const Path& directory, const BarChart& chart) {
  write_files(directory, chart.id, to_svg(chart), to_csv(chart), to_gnuplot(chart));
}

}  // namespace ropd::report
