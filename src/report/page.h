// The report as one HTML file: no scripts, no external requests, light and dark, printable. Everything read
// from run directories is escaped.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "report/figures.h"
#include "report/methods.h"
#include "report/samples.h"

namespace ropd::report {

struct PageContent {
  std::string title;
  std::string command;  // that makes this report again
  const Comparison* comparison = nullptr;
  std::vector<FigureGroup> figures;
  SampleComparison samples;
};

std::string render_page(const PageContent& content);

// Reads the runs (DIR or NAME=DIR; runs of one name are averaged), writes `out` and the figures' data and
// scripts into figures/ beside it. Returns the number of figures.
size_t write_report(std::span<const std::string> runs, const Path& out, const std::string& title);

}  // namespace ropd::report
