// The numbers of a chart as CSV and a gnuplot script that draws them, for use in a paper. Names from run
// directories are data here: they appear only inside quotes that neither CSV readers nor gnuplot interpret.
#pragma once
#include <string>

#include "base/file.h"
#include "report/chart.h"

namespace ropd::report {

// One row per point: series_index,series,x,y,low,high.
std::string to_csv(const LineChart& chart);
// One row per value: row_index,row,part_index,part,value.
std::string to_csv(const BarChart& chart);

// Draws <id>.csv into <id>.gnuplot.svg: `cd figures && gnuplot <id>.gp`.
std::string to_gnuplot(const LineChart& chart);
std::string to_gnuplot(const BarChart& chart);

// Writes <id>.csv, <id>.gp and <id>.svg (with its own style, light) into `directory`.
void write_chart_files(const Path& directory, const LineChart& chart);
void write_chart_files(const Path& directory, const BarChart& chart);

}  // namespace ropd::report
