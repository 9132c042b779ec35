// A decoder over packed sequences: hidden states for scoring, and the pass with its gradient for training.
#pragma once
#include <span>
#include <vector>

#include "model/batch.h"
#include "model/block.h"
#include "model/weights.h"

namespace ropd::model {

// Mutable memory of forward passes, kept between calls so that it is allocated once. Not shared between
// threads.
struct Workspace {
  BlockTrace trace;
  BlockScratch scratch;
  kernels::RopeTable rope;
  Buffer x;  // [T, D]
  // A table for positions below `num_positions` at least.
  const kernels::RopeTable& rope_for(const ModelConfig& config, int64_t num_positions);
};

// Refuses ids outside the vocabulary and sequences beyond max_position_embeddings, naming sequence and value.
void check_batch(const PackedBatch& batch, const ModelConfig& config);

// Writes hidden [T, D]: the states after the last norm, ready for the head.
void forward(std::span<float> hidden, const Weights& weights, const PackedBatch& batch, Precision precision,
             Workspace& workspace);

// Gradients in the flat layout of Parameters.
class Gradients {
 public:
  explicit Gradients(const Parameters& parameters);
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  void clear() { values_.fill(0); }
  const LayerGradients& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }
  std::span<float> embedding() { return embedding_; }
  std::span<float> head() { return head_; }  // the embedding's when tied
  std::span<float> final_norm() { return final_norm_; }

 private:
  Buffer values_;
  std::vector<LayerGradients> layers_;
  std::span<float> embedding_, head_, final_norm_;
};

// Forward and backward over one microbatch. Layers whose trace fits into the memory budget keep it; the
// others keep only their input and are recomputed, with the same bits.
class TrainingPass {
 public:
  TrainingPass(const Weights& weights, Precision precision, size_t trace_budget_bytes);
  // The hidden states [T, D] after the last norm; valid until the next call.
  std::span<const float> forward(const PackedBatch& batch);
  // grad_hidden [T, D] at the result of the last forward() of the same batch; used as scratch. Adds to
  // gradients.
  void backward(Gradients& gradients, std::span<float> grad_hidden, const PackedBatch& batch);
  // Bytes held for traces and scratch.
  size_t bytes() const;

 private:
  const Weights& weights_;
  const Precision precision_;
  const size_t trace_budget_bytes_;
  Workspace workspace_;
  std::vector<BlockTrace> traces_;  // [layers kept]; layer i < size keeps its whole trace
  std::vector<Buffer> inputs_;      // [layers - layers kept]
  Buffer last_, hidden_, inv_rms_;
  BlockContext context(const PackedBatch& batch);
};

}  // namespace ropd::model
