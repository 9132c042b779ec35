// Weights of one stored type in memory of their own, filled by a cheap pattern around `scale`: for measuring
// speed, where only the shape counts.
#pragma once
#include "model/weights.h"

namespace ropd::app {

model::Weights pattern_weights(const ModelConfig& config, DType dtype, float scale);

}  // namespace ropd::app
