// A decoder over packed sequences: hidden states for scoring.
#pragma once
#include <span>

#include "model/batch.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace ropd::model {

// Refuses ids outside the vocabulary and sequences beyond max_position_embeddings, naming sequence and value.
void check_batch(const PackedBatch& batch, const ModelConfig& config);

// Writes hidden [T, D]: the states after the last norm, ready for the head. A small model goes through the
// batch in parts that stay in the cache.
void forward(std::span<float> hidden, const Weights& weights, const PackedBatch& batch, Precision precision,
             Workspace& workspace);

}  // namespace ropd::model
