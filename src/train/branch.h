// Runs that share a beginning share it: a new run that takes over the first iterations of another one.
#pragma once
#include <cstdint>

#include "base/file.h"
#include "train/train_config.h"

namespace ropd::train {

// Makes config.output a run that stands behind optimization step `step` of the run `from`, as if it had
// trained until there itself: its checkpoint, banks, rollouts and metrics are taken over, and its curriculum
// has seen the recorded gradient comparisons. Both runs must have made the same choices up to this step: the
// same source in every iteration, and equal settings apart from the curriculum. Go on with resume_run.
// Nothing happens when config.output is this run already, wherever it was branched: it ends the same. Fails when
// it holds another one.
void branch_run(const Path& from, uint64_t step, const TrainConfig& config);

}  // namespace ropd::train
