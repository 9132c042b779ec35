// A short text that tells which weights a rollout came from.
#pragma once
#include <string>

#include "model/weights.h"

namespace ropd::rollout {

// "all:" and the SHA-256 over the shape of the model and every value, as f32, in blocks that all threads
// share: the same for a checkpoint and its widened copy in memory, another one after any changed bit. Reads
// all weights. An adapter counts by its A, B and scale, so a merged copy is another one; an adapter that changes
// nothing yet does not count.
std::string weights_fingerprint(const model::Weights& weights);

}  // namespace ropd::rollout
