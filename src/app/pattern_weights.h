// Weights filled by a cheap pattern between -scale and scale: for measuring speed, where only the shape counts.
#pragma once
#include <span>

#include "model/weights.h"

namespace ropd::app {

void fill_pattern(std::span<float> values, float scale);

// Of one stored type, in memory of their own.
model::Weights pattern_weights(const ModelConfig& config, DType dtype, float scale);

}  // namespace ropd::app
