// The report as one HTML file: no scripts, no requests, no links out of it, light and dark, printable. Everything read
// from run directories is escaped. Numbers behind figures and tables travel inside the page.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "report/figures.h"
#include "report/findings.h"
#include "report/methods.h"
#include "report/samples.h"

namespace ropd::report {

struct PageContent {
  std::string title;
  std::string page;   // where it is written
  std::string files;  // the folder beside the page that holds tables and figures, by its name
  const Comparison* comparison = nullptr;
  std::vector<std::string> findings;
  std::vector<Analysis> analyses;  // [Comparison::results]
  std::vector<SampleQuestion> samples;
};

// Everything but the name of the file: what the page shows of these runs.
PageContent make_content(const Comparison& comparison, const std::string& title);

std::string render_page(const PageContent& content);

// Every table and figure of the page.
std::vector<stats::Table> page_tables(const PageContent& content);
std::vector<FigureGroup> page_figures(const PageContent& content);

// Reads the runs (DIR or NAME=DIR; runs of one name are averaged; a folder of runs stands for all of them), writes `out`
// and, into STEM_files/ beside it (report.html: report_files/), every figure (SVG, CSV, gnuplot) and table (text,
// Markdown, LaTeX, CSV). The page needs none of them. Returns the number of figures.
size_t write_report(std::span<const std::string> arguments, const Path& out, const std::string& title);

}  // namespace ropd::report
