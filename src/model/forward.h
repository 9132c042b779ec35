// A decoder over packed sequences: hidden states for scoring.
#pragma once
#include <functional>
#include <span>

#include "model/batch.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace ropd::model {

// Refuses ids outside the vocabulary and sequences beyond max_position_embeddings, naming sequence and value.
void check_batch(const PackedBatch& batch, const ModelConfig& config);

// Writes hidden [T, D]: the states after the last norm, ready for the head. A small model goes through the
// batch in parts that stay in the cache and tells no layers; one that is streamed (layer_stream.h) makes a pass for it.
void forward(std::span<float> hidden, const Weights& weights, const PackedBatch& batch, Precision precision,
             Workspace& workspace, const OnLayer& on_layer = {});

// The same for several batches that go through every layer before any of them goes on to the next: a layer's
// weights are needed once for all of them. Writes states[i] [T of batch i, D]; enter_layer is called before
// each layer. The same bits as one by one.
void forward_by_layers(std::span<Buffer> states, const Weights& weights, std::span<const PackedBatch> batches,
                       Precision precision, Workspace& workspace,
                       const std::function<void(size_t layer)>& enter_layer);

// Memory of a pass besides the weights, for a token of the batch that is in a layer (its states included) and
// for one whose states wait.
size_t forward_bytes_per_token(const ModelConfig& config);
size_t waiting_bytes_per_token(const ModelConfig& config);

}  // namespace ropd::model
