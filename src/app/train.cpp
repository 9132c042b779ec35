// ropd train, ropd resume.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "app/plan.h"
#include "app/ranks.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "comm/mpi_world.h"
#include "train/run_parts.h"
#include "train/session.h"
#include "train/sft_run.h"

namespace ropd::app {
namespace {

void report(train::RunOutcome outcome, const std::string& directory) {
  if (outcome == train::RunOutcome::stopped) end_stopped();
  log_info("done: ", directory, " (ropd report ", directory, " --out report.html)");
}

}  // namespace

void add_train(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    bool dry_run = false;
    int ranks = 1;
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
  add_ranks(*command, options->ranks);
  command->footer(
      "Examples:\n"
      "  ropd train recipes/qwen3-0.6b-ropd.yaml\n"
      "  ropd train recipes/qwen3-0.6b-ropd.yaml train.iterations=5 output=runs/short --dry-run");
  command->callback([options, command] {
    train::TrainConfig config;
    const auto load = [&] { config = train::load_train_config(options->config, options->overrides); };
    if (options->dry_run) {
      require_alone("train --dry-run");
      load();
      return print_plan(*command, config, /*checks_start=*/true, {.ranks = options->ranks});
    }
    install_stop_handlers();
    comm::Crew& crew = join_crew();
    leader_first(crew, load);
    if (!crew.leads()) end_assisting(train::assist_run(crew, config));
    crew.expect_service();
    mention_tiles({{"rollout.precision=", config.rollout.precision},
                   {"train.precision=", config.train.precision},
                   {"train.teacher_precision=", config.train.teacher_precision}});
    std::string line = "ropd train " + options->config;
    for (const std::string& setting : options->overrides) line += " " + setting;
    report(train::start_run(config, line, {}, crew), config.output);
  });
}

void add_resume(CLI::App& app) {
  struct Options {
    std::string directory;
    train::ResumeOptions resume;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("resume", "go on with a run from its newest checkpoint that verifies");
  CLI::Option* run = command->add_option("run", options->directory, "run directory")->required();
  if (!comm::is_started_by_launcher()) run->check(CLI::ExistingDirectory);  // only the leader needs it
  command->add_option("overrides", options->resume.overrides,
                      "settings that change from here on, key=value: train.iterations, train.learning_rate, "
                      "memory, checkpoint, eval, alarms, or paths of files that were moved");
  command->add_flag("--start-over", options->resume.starts_over,
                    "give up the checkpoints (moved aside) and begin at step 0");
  command->footer(
      "Examples:\n  ropd resume runs/qwen3-0.6b-ropd\n"
      "  ropd resume runs/qwen3-0.6b-ropd train.iterations=20 teacher=/disk2/Qwen3-4B");
  command->callback([options] {
    install_stop_handlers();
    comm::Crew& crew = join_crew();
    if (!crew.leads()) end_assisting(train::assist_run(crew));
    crew.expect_service();
    std::string line = "ropd resume " + options->directory;
    for (const std::string& setting : options->resume.overrides) line += " " + setting;
    if (train::is_sft_run(options->directory)) {
      if (!crew.is_alone())
        fail(options->directory,
             ": a fine-tuning run, which is one process; start it without mpirun or srun");
      if (!options->resume.overrides.empty())
        fail(options->directory,
             ": a fine-tuning run, whose settings cannot change; start a new one with another output");
      return report(train::resume_sft(options->directory, options->resume.starts_over), options->directory);
    }
    report(train::resume_run(options->directory, line, {}, options->resume, crew), options->directory);
  });
}

}  // namespace ropd::app
