// Settings that may change when a run goes on (`ropd resume RUN key=value`), and what a change means.
// Whatever the past of the run depended on stays as it is: another curriculum, seed or objective is another
// run.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/config_fields.h"
#include "train/train_config.h"

namespace ropd::train {

// The differences between the run's configuration and the one it shall go on with. Fails naming the first key
// that must not change.
std::vector<ConfigDifference> allowed_changes(const TrainConfig& before, const TrainConfig& after);

// Whether weights behind the checkpoint will differ from those the old settings gave.
bool alters_weights(std::span<const ConfigDifference> changes);

// "train.learning_rate: 1e-06 -> 2e-06, ..."
std::string describe(std::span<const ConfigDifference> changes);

}  // namespace ropd::train
