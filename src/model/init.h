// Fresh weights: normal with the usual scales, norms at one, from the counter generator (same seed, same
// model).
#pragma once
#include <cstdint>

#include "model/weights.h"

namespace ropd::model {

struct InitSettings {
  uint64_t seed = 1;
  float embedding_scale = 0.08f;  // standard deviation
  float linear_gain = 1.0f;  // standard deviation is gain / sqrt(inputs); projections back into the residual
                             // stream are divided by sqrt(2 * layers) as well
  float qk_norm_gain = 1.0f;
};

void initialize(Parameters& parameters, const InitSettings& settings);

}  // namespace ropd::model
