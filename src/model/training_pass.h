// Forward and backward of the layers over a microbatch, which may come in parts:
//   for each part:  states = forward(part);   grad_states = what the loss says;   backward(grad_states)
//   finish()
// The head and its loss lie between forward and backward and are the caller's. Weight gradients add
// tokens in order and sequence by sequence, so parts and microbatches do not show in them. The embedding's part comes once for a
// microbatch, behind every part's head, whose weights it may share. Layers whose trace fits into the budget
// keep it; the others keep only their input and are computed again, with the same bits.
#pragma once
#include <span>
#include <vector>

#include "model/batch.h"
#include "model/gradients.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace ropd::model {

// For traces, unless the user says otherwise.
inline constexpr size_t kTraceBudgetBytes = size_t{2} << 30;

// Not shared between threads. Memory is kept between calls, as much as the largest of them needs.
class TrainingPass {
 public:
  explicit TrainingPass(Precision precision, size_t trace_budget_bytes = kTraceBudgetBytes)
      : precision_(precision), trace_budget_bytes_(trace_budget_bytes) {}

  // The states after the last norm of the rows that have a loss: [rows, D], rows ascending. Prompts are each
  // sequence's own. Valid until the next call; `weights` must live until finish().
  std::span<const float> forward(const Weights& weights, PackedBatch part, std::vector<int64_t> rows,
                                 const OnLayer& on_layer = {});
  // Where each sequence's rows begin among those: [B + 1].
  std::span<const int64_t> row_begins() const { return row_begins_; }
  // Adds the gradients of what forward() computed last, all but the embedding's. grad_states [rows, D].
  void backward(Gradients& gradients, std::span<const float> grad_states, const OnLayer& on_layer = {});
  // Adds the embedding's gradient of the parts since the last call.
  void finish(Gradients& gradients);

  // Held for what the layers leave to backward(): traces and inputs.
  size_t trace_bytes() const;

 private:
  struct Embedded {  // of a part
    std::vector<Token> tokens;
    Buffer grad;  // [T, D]
  };
  const Precision precision_;
  const size_t trace_budget_bytes_;
  Workspace workspace_;
  std::vector<BlockTrace> traces_;  // [layers kept]; layer i < size keeps its whole trace
  std::vector<Buffer> inputs_;      // [layers - layers kept - 1]: the last layer is not computed again
  size_t most_trace_bytes_ = 0;     // that a part so far needed
  Buffer last_, hidden_, inv_rms_;  // of the last layer; after the last norm
  Buffer states_;                   // of the rows that have a loss
  // between forward() and backward()
  const Weights* weights_ = nullptr;
  PackedBatch part_;
  std::vector<int64_t> rows_, row_begins_;
  // between backward() and finish()
  std::vector<Embedded> embedded_;
  size_t num_embedded_ = 0;  // in use

  BlockContext context();
  void provide_traces(const ModelConfig& config, size_t tokens);
};

}  // namespace ropd::model
