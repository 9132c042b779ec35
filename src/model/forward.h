// A decoder over packed sequences: hidden states for scoring, and the pass with its gradient for training.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "model/batch.h"
#include "model/batch_part.h"
#include "model/block.h"
#include "model/weights.h"

namespace ropd::model {

// Mutable memory of forward passes, kept between calls so that it is allocated once. Not shared between
// threads; those that work on sequences of their own each take one of the lanes.
struct Workspace {
  BlockTrace trace;
  BlockScratch scratch;
  kernels::RopeTable rope;
  Buffer x;  // [T, D]
  std::vector<SharedPrefix> prefixes;
  // A table for positions below `num_positions` at least.
  const kernels::RopeTable& rope_for(const ModelConfig& config, int64_t num_positions);
  std::vector<std::unique_ptr<Workspace>> lanes;
  void provide_lanes(size_t count);
};

// Tokens that a thread takes at a time when it works on sequences of its own: enough rows for every weight
// that is read, few enough for the cache.
inline constexpr int64_t kTokensPerTask = 192;

// Into how many parts threads should divide `tokens` tokens: one where each product is better shared, or
// where all of it takes less time than waking a thread.
int64_t num_tasks(const ModelConfig& config, int64_t tokens);

// Refuses ids outside the vocabulary and sequences beyond max_position_embeddings, naming sequence and value.
void check_batch(const PackedBatch& batch, const ModelConfig& config);

// Writes hidden [T, D]: the states after the last norm, ready for the head. A thread with sequences of its
// own goes through a small model in parts that stay in its cache.
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

// What training minimises, given the states that have a loss. `states` [n, D] are those of rows [first, first
// + n) of the ones asked for; adds the gradients to grad_states [n, D] and to the head's weights. Called for
// different rows one call after the other, in order, maybe from different threads.
using HeadStep = std::function<void(std::span<float> grad_states, std::span<float> grad_head,
                                    std::span<const float> states, size_t first)>;

// Forward, loss and backward over one microbatch. Layers whose trace fits into the memory budget keep it; the
// others keep only their input and are recomputed, with the same bits. With a model that is small enough
// threads work on sequences of their own; gradients are added in order, so that shows nowhere. Prefixes that
// sequences share are computed first and get their gradients last.
class TrainingPass {
 public:
  TrainingPass(const Weights& weights, Precision precision, size_t trace_budget_bytes);
  // Adds to gradients. `rows`: the rows of the batch that have a loss, ascending; head() gets their states
  // after the last norm.
  void accumulate(Gradients& gradients, const PackedBatch& batch, std::span<const int64_t> rows,
                  const HeadStep& head);
  // Bytes held for traces and scratch.
  size_t bytes() const;

 private:
  struct Lane {  // the memory of a thread, or of a prefix
    Workspace workspace;
    std::vector<BlockTrace> traces;  // [layers kept]; layer i < size keeps its whole trace
    std::vector<Buffer> inputs;      // [layers - layers kept]
    Buffer last, hidden, inv_rms;    // of the last layer; after the last norm
    Buffer states, grad_states;      // of the rows that have a loss
  };
  const Weights& weights_;
  const Precision precision_;
  const size_t trace_budget_bytes_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<SharedPrefix> prefixes_;
  std::vector<std::unique_ptr<Lane>> prefix_lanes_;
  Buffer grad_x_;  // [T, D], of the whole batch

  BlockContext context(Lane& lane, const PackedBatch& batch) const;
  void forward(Lane& lane, const Weights& weights, const BatchPart& part, size_t trace_budget_bytes) const;
  void backward(Lane& lane, std::span<float> grad_x, Gradients& gradients, const Weights& weights,
                const BatchPart& part, Turn& turn, std::atomic<int>& layers_done) const;
};

}  // namespace ropd::model
