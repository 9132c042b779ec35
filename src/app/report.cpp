// ropd report: runs, evaluations and diagnoses -> one HTML page that needs no other file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/output.h"
#include "base/json.h"
#include "report/page.h"

namespace ropd::app {
namespace {

constexpr const char* kExamples =
    R"(A folder is DIR or NAME=DIR: a run, an evaluation, a diagnosis, or a folder of those (a laboratory).
NAME is shown instead of the folder's name, and runs of one name (seeds, data orders) are averaged.
A folder with only an evaluation (the teacher, the initial student) is a reference row.
Examples:
  ropd report runs/qwen3-0.6b-ropd
  ropd report runs/lab --out report.html
  ropd report theta0=lab/initial current=lab/current R-OPD=lab/ropd --out report.html)";

struct ReportOptions {
  std::vector<std::string> runs;
  Output out{.path = "report.html"};
  std::string title = "On-policy distillation";
};

// What lies in them is read. The files beside the page are figures and tables, whose names no run has.
std::vector<std::string> folders_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> folders;
  for (const std::string& argument : arguments) {
    folders.push_back(argument);  // DIR, or NAME=DIR
    if (const size_t equals = argument.find('='); equals != std::string::npos)
      folders.push_back(argument.substr(equals + 1));
  }
  return folders;
}

}  // namespace

void add_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      app.add_subcommand("report", "tables and figures of runs in one self-contained HTML file");
  command->add_option("runs", options->runs, "folders, each DIR or NAME=DIR")->required()->expected(1, 256);
  add_output(*command, options->out, "the page; NAME_files/ beside it holds figures and tables as files")
      ->capture_default_str();
  command->add_option("--title", options->title, "heading of the page")->capture_default_str();
  command->footer(kExamples);
  command->callback([options, command] {
    if (options->out.is_standard())
      throw CLI::ValidationError("--out", "a report has files beside it; expected the name of a file");
    check_output(options->out, folders_of(options->runs));
    const std::string& path = options->out.path;
    const size_t num_figures = report::write_report(options->runs, path, options->title);
    if (wants_json(*command))
      std::printf("%s\n", Json{{"report", path}, {"figures", num_figures}}.dump().c_str());
    else
      std::printf("%s (%zu figures)\n", path.c_str(), num_figures);
  });
}

}  // namespace ropd::app
