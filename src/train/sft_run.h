// The folder of a fine-tuning run: made, taken up again from anywhere, read completely.
#pragma once
#include "base/file.h"
#include "train/sft.h"
#include "train/verify_run.h"

namespace ropd::train {

// True where config.yaml is one of `ropd sft`. False for anything else, and for what cannot be read.
bool is_sft_run(const Path& directory);

// What `ropd sft` does: loads the data and the model, trains or goes on. `yaml` as in run_sft.
RunOutcome fine_tune(const SftConfig& config, const std::string& yaml = "");

// Goes on with the settings of the folder. Relative paths begin where the run began; the folder may have been
// moved. starts_over: gives up the checkpoints (moved aside) and begins at step 0.
RunOutcome resume_sft(const Path& directory, bool starts_over = false);

// Config, inputs, checkpoints, metrics and the result. Changes nothing.
Verification verify_sft_run(const Path& directory);

}  // namespace ropd::train
