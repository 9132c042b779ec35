// ropd train, ropd resume.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/plan.h"
#include "base/log.h"
#include "base/stop.h"
#include "train/session.h"

namespace ropd::app {
namespace {

void report(train::RunOutcome outcome, const std::string& directory) {
  if (outcome == train::RunOutcome::done)
    log_info("done: ", directory, " (ropd report ", directory, " --out report.html)");
}

}  // namespace

void add_train(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    bool dry_run = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("train", "distil a teacher into a student by a curriculum of rollouts");
  command->add_option("config", options->config, "YAML file (docs/config.md lists its keys)")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("overrides", options->overrides,
                      "key=value, e.g. train.learning_rate=2e-6 output=runs/b");
  command->add_flag("--dry-run", options->dry_run, "check models, data, memory and disk, and train nothing");
  command->footer(
      "Examples:\n"
      "  ropd train recipes/qwen3-0.6b-ropd.yaml\n"
      "  ropd train recipes/qwen3-0.6b-ropd.yaml train.iterations=5 output=runs/short --dry-run");
  command->callback([options, command] {
    const auto config = train::load_train_config(options->config, options->overrides);
    if (options->dry_run) return print_plan(*command, config, /*checks_models=*/true);
    install_stop_handlers();
    report(train::start_run(config, "ropd train " + options->config), config.output);
  });
}

void add_resume(CLI::App& app) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("resume", "go on with a run from its newest checkpoint that verifies");
  command->add_option("run", *directory, "run directory")->required()->check(CLI::ExistingDirectory);
  command->footer("Example:\n  ropd resume runs/qwen3-0.6b-ropd");
  command->callback([directory] {
    install_stop_handlers();
    report(train::resume_run(*directory, "ropd resume " + *directory), *directory);
  });
}

}  // namespace ropd::app
