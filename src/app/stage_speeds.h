// How fast this machine is at each stage of an iteration: the program's own work on models of the run's shapes with
// fewer layers and a smaller vocabulary, for some seconds.
#pragma once
#include <optional>

#include "train/stage_time.h"

namespace ropd::app {

// Nothing where even these do not fit into a part of the free memory.
std::optional<train::StageSpeeds> measure_stages(const train::TrainConfig& config);

}  // namespace ropd::app
