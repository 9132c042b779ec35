// ropd lab: the paper in miniature; models, training by four curricula, evaluation, summary and report.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/commands.h"
#include "app/output.h"
#include "base/file.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/stop.h"
#include "lab/experiment.h"
#include "report/page.h"

namespace ropd::app {
namespace {

// The models that come with the program: lab/models of the source tree that build/ropd lies in.
Path shipped_models() {
  std::error_code ignored;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const Path models = program.parent_path().parent_path() / "lab" / "models";
  return std::filesystem::exists(models / "teacher" / "config.json") ? models : Path{};
}

void run(lab::LabOptions options, bool makes_models) {
  install_stop_handlers();
  if (options.models.empty() && !makes_models) {
    options.models = shipped_models();
    if (options.models.empty())
      log_info(
          "no lab/models in the source tree of this program; teacher and student are made first, which "
          "takes minutes (--models DIR takes others)");
  }
  const auto begin = std::chrono::steady_clock::now();
  lab::LabResults results;
  std::vector<lab::NamedRun> runs;
  if (!lab::run_lab(options, results, runs))
    end_stopped("stopped; the same command goes on where this one ended");
  std::vector<std::string> arguments;
  for (const auto& [method, directory] : runs) arguments.push_back(method + "=" + directory.string());
  const Path page = options.output / "report.html";
  report::write_report(arguments, page, "The laboratory");
  const std::string text = lab::console_table(results) + "\n" + lab::console_findings(results);
  write_file_atomically(options.output / "summary.txt", text);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("\n%s\nreport: %s   (%s)\n", text.c_str(), page.string().c_str(),
              format_duration(seconds).c_str());
}

}  // namespace

void add_lab(CLI::App& app) {
  struct Options {
    lab::LabOptions lab;
    std::string output = "runs/lab", models;
    bool makes_models = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("lab", "the paper in miniature: tiny models, R-OPD and its controls, report");
  command->add_flag("--fast", options->lab.is_fast, "a first impression in about a minute");
  command->add_flag("--controls", options->lab.has_controls, "also the recent bank and the reverse order");
  command->add_option("--seeds", options->lab.num_seeds, "data orders and sampling seeds")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--out", options->output, "folder of everything")->capture_default_str();
  command
      ->add_option("--models", options->models,
                   "folder with teacher/ and student/ instead of the shipped ones")
      ->check(CLI::ExistingDirectory);
  command->add_flag("--make-models", options->makes_models,
                    "make teacher and student afresh by supervised fine-tuning");
  command->add_option("--learning-rate", options->lab.learning_rate, "of AdamW")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--responses", options->lab.responses_per_iteration, "an iteration")
      ->check(CLI::Range(8, 100000))
      ->capture_default_str();
  command->add_flag("--grouped", options->lab.grouped, "responses to one query stand together in a batch");
  command->footer(
      "Examples:\n  ropd lab --fast\n  ropd lab --seeds 3 --controls --out runs/lab3\nInterrupted, the same "
      "command goes on.");
  command->callback([options] {
    options->lab.output =
        options->output + (options->lab.is_fast && options->output == "runs/lab" ? "-fast" : "");
    options->lab.models = options->models;
    run(options->lab, options->makes_models);
  });
}

}  // namespace ropd::app
