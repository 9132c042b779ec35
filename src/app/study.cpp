// ropd study: a graph of runs, evaluations, diagnoses and tables; ropd branch: one continuation of a run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "app/commands.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "study/graph_state.h"
#include "study/study.h"
#include "train/branch.h"
#include "train/plan.h"
#include "train/session.h"

namespace ropd::app {
namespace {

const std::map<std::string, study::NodeKind> kKinds = {{"bank", study::NodeKind::bank},
                                                       {"training", study::NodeKind::training},
                                                       {"evaluation", study::NodeKind::evaluation},
                                                       {"prefixes", study::NodeKind::prefixes},
                                                       {"diagnosis", study::NodeKind::diagnosis}};

struct StudyOptions {
  std::string file, until;
  std::vector<std::string> overrides;
  study::WorkOptions work;
  bool is_dry = false, shows_status = false;
};

// Ranks of a launcher are workers that claim nodes, as processes started one by one are; what is told is the
// leader's.
void run_study(StudyOptions options, bool as_json) {
  if (options.is_dry || options.shows_status) require_alone("study --dry-run and --status");
  const bool works = !options.is_dry && !options.shows_status;
  comm::Crew& crew = works ? join_crew() : comm::solo_crew();
  std::optional<study::Study> read;
  leader_first(crew, [&] { read.emplace(options.file, options.overrides); });
  study::Study& study = *read;
  if (options.is_dry) {
    const std::string graph = study.dry_run(train::measure_flops());
    if (as_json)
      print_json({{"study", study.file().config.name}, {"text", graph}});
    else
      print_text(graph);
    return;
  }
  if (options.shows_status) {
    if (as_json)
      std::printf("%s\n",
                  io::graph_json(study::graph_state(study.file(), study.plan(), study.store())).c_str());
    else
      print_text(study.status());
    return;
  }
  install_stop_handlers();
  if (!options.until.empty()) options.work.until = kKinds.at(options.until);
  const bool is_done = study.work(options.work);
  if (!crew.leads()) assist(crew);
  crew.expect_service();
  if (!is_done) end_stopped("stopped; the same command goes on where this one ended");
  const study::Findings found = study.write_tables();
  if (as_json)
    print_json(Json::parse(found.json));
  else
    print_text(found.text);
}

}  // namespace

void add_study(CLI::App& app) {
  auto options = std::make_shared<StudyOptions>();
  CLI::App* command =
      app.add_subcommand("study", "a graph of runs that share what is equal, evaluations, diagnoses, tables");
  command->add_option("file", options->file, "YAML file (docs/formats.md)")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("overrides", options->overrides,
                      "key=value settings of the study, e.g. output=runs/mine");
  command->add_flag("--dry-run", options->is_dry, "the graph with what it costs; nothing is made");
  command->add_flag("--status", options->shows_status, "what is done, and who works on what");
  command->add_flag("--accept-changed-inputs", options->work.accepts_changed_inputs,
                    "go on with models, queries or suites that have changed since the folder was begun");
  command->add_option("--only", options->work.only, "nodes whose name holds this text, and what they need");
  command->add_option("--until", options->until, "stop behind this kind of node")
      ->check(CLI::IsMember({"bank", "training", "evaluation", "prefixes", "diagnosis"}));
  command->footer(
      "Any number of processes may work on one study, also on machines that share its folder.\nExamples:\n"
      "  ropd study studies/annealing.yaml --dry-run\n  ropd study studies/annealing.yaml --only R-OPD");
  command->callback([options, command] { run_study(*options, wants_json(*command)); });
}

void add_branch(CLI::App& app) {
  struct Options {
    std::string run, config;
    uint64_t step = 0;
    std::vector<std::string> overrides;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("branch", "continue a run's checkpoint with another curriculum");
  command->add_option("run", options->run, "run directory")->required()->check(CLI::ExistingDirectory);
  command->add_option("step", options->step, "optimization step of the checkpoint")
      ->required()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
  command
      ->add_option("config", options->config,
                   "YAML file of the new run; up to this step its sources are the same")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("overrides", options->overrides, "key=value, e.g. output=runs/b");
  command->footer("Example:\n  ropd branch runs/current 40 recipes/qwen3-0.6b-fixed.yaml output=runs/fixed");
  command->callback([options] {
    const auto config = train::load_train_config(options->config, options->overrides);
    install_stop_handlers();
    train::branch_run(options->run, options->step, config);
    if (train::resume_run(config.output, "ropd branch " + options->run) == train::RunOutcome::stopped)
      end_stopped();
    log_info("done: ", config.output);
  });
}

}  // namespace ropd::app
