// The rotary frequencies of a model, stretched as its config says (records/model_config.h: RopeScaling):
//   linear   f_i / factor
//   llama3   low frequencies / factor, high ones kept, between them by how often they turn in the original
//            length
//   yarn     the same idea as a ramp over dimensions, and cosine and sine multiplied by an attention factor
// None of them depends on the length of a sequence, so a cached key stays right while a response grows.
#pragma once
#include <vector>

#include "records/model_config.h"

namespace ropd::model {

struct RopeFrequencies {
  std::vector<double> inverse;  // [E/2]
  double factor = 1;            // of cosine and sine
};

RopeFrequencies rope_frequencies(const ModelConfig& config);

}  // namespace ropd::model
