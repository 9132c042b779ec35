// A run from its directory's first file to its last: checks, training, checkpoints, metrics, stopping and
// going on.
#pragma once
#include <functional>
#include <string>

#include "base/file.h"
#include "records/metrics.h"
#include "train/train_config.h"

namespace ropd::train {

enum class RunOutcome { done, stopped };  // stopped: on request, saved, to be resumed

// What a run tells its caller beside its files; may be empty.
struct SessionHooks {
  std::function<void(const StepRecord&)> on_step = {};  // its line is durable
};

// A new run in config.output. Fails, before anything trains, when something does not fit.
RunOutcome start_run(const TrainConfig& config, const std::string& command_line,
                     const SessionHooks& hooks = {});

// Goes on from the newest checkpoint that verifies; from the beginning when there is none yet. A run that is
// done stays as it is.
RunOutcome resume_run(const Path& run_directory, const std::string& command_line,
                      const SessionHooks& hooks = {});

// Starts the run, or goes on with it when config.output holds the same one already.
RunOutcome start_or_resume_run(const TrainConfig& config, const std::string& command_line,
                               const SessionHooks& hooks = {});

}  // namespace ropd::train
