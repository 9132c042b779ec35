// A run from its directory's first file to its last: checks, training, checkpoints, metrics, stopping and
// going on.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "comm/crew.h"
#include "records/metrics.h"
#include "train/run_inputs.h"
#include "train/train_config.h"

namespace ropd::train {

enum class RunOutcome { done, stopped };  // stopped: on request, saved, to be resumed

// What a run tells its caller beside its files; may be empty.
struct SessionHooks {
  std::function<void(const StepRecord&)> on_step = {};  // its line is durable
};

// Everything that start_run refuses, refused without writing anything: models, queries, banks, a checkpoint
// to continue from, memory and disk, the output folder.
RunInputs check_start(const TrainConfig& config, int ranks = 1);

// A new run in config.output. Fails, before the folder is made, when something does not fit. The caller leads
// the crew, whose other ranks assist (train/run_parts.h); results do not depend on their number.
RunOutcome start_run(const TrainConfig& config, const std::string& command_line,
                     const SessionHooks& hooks = {}, comm::Crew& crew = comm::solo_crew());

struct ResumeOptions {
  std::vector<std::string> overrides = {};  // settings that change from here on; kept in the run
  bool starts_over = false;                 // gives up the checkpoints (moved aside) and begins at step 0
};

// Goes on from the newest checkpoint that verifies; from the beginning when none was made yet. A run that is
// done stays as it is. Works from any directory. Fails when a file the run depends on, its config.yaml
// included, is not what it was, and when no checkpoint can be used.
RunOutcome resume_run(const Path& run_directory, const std::string& command_line,
                      const SessionHooks& hooks = {}, const ResumeOptions& options = {},
                      comm::Crew& crew = comm::solo_crew());

// Whether config.output holds this run already. Fails when it holds another one.
bool holds_run(const TrainConfig& config);

// Starts the run, or goes on with it when config.output holds the same one already.
RunOutcome start_or_resume_run(const TrainConfig& config, const std::string& command_line,
                               const SessionHooks& hooks = {});

}  // namespace ropd::train
