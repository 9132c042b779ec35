// A short text that tells which weights a rollout came from.
#pragma once
#include <string>

#include "model/weights.h"

namespace ropd::rollout {

// SHA-256 over the shape of the model, all its vectors and up to 4096 evenly spaced values of each matrix, as
// f32: the same for a checkpoint and its widened copy in memory, another one after any optimization step.
// Reads little, so that a mapped checkpoint stays on disk.
std::string weights_fingerprint(const model::Weights& weights);

}  // namespace ropd::rollout
