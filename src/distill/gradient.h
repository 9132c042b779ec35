// The gradient of the objective over one minibatch. A minibatch is cut into shards by rule
// (train/minibatch.h), not by threads; each shard's gradient is one chain from zero over its microbatches,
// and
//   g = ((g0 + g1) + g2) + ...        the loss and the other sums likewise.
// Who computes a shard shows nowhere: with a small model threads take whole shards, with a large one shards
// come one after the other with all threads inside.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "distill/objective.h"
#include "kernels/vocab_head.h"
#include "model/training_pass.h"

namespace ropd::distill {

// One response of a minibatch. `token_weight` is what the reduction gives each of its valid tokens
// (method.md section 4).
struct TrainingItem {
  const Rollout* rollout = nullptr;
  const Supervision* supervision = nullptr;
  float token_weight = 0;
};
using Microbatch = std::vector<TrainingItem>;  // packed into one pass
using Shard = std::vector<Microbatch>;

struct GradientConfig {
  ObjectiveConfig objective;
  kernels::Precision precision = kernels::Precision::f32;
  bool old_is_current = false;  // the iteration has one minibatch
  size_t trace_budget_bytes = model::kTraceBudgetBytes;
  // Told the share of the minibatch that is done, of a large model layer by layer; of this rank's shards where there
  // are several. May be empty.
  std::function<void(double share)> progress = {};
};

// The teacher for the objectives that compare whole distributions: its states after the last norm that predict
// each response token, item after item, and what turns them into logits.
struct TeacherRows {
  Buffer states;                  // [sum of responses, D of the teacher]
  kernels::WeightView head = {};  // [V, D of the teacher]
  kernels::Precision precision = kernels::Precision::f32;
};

// Of a teacher in this process, by one packed pass.
TeacherRows teacher_rows(const model::Weights& teacher, std::span<const TrainingItem> items,
                         kernels::Precision precision, model::Workspace& workspace);

// Where they come from, a microbatch at a time: those of a minibatch may be larger than the teacher. Asked by one
// thread at a time, and only where the objective needs them.
using TeacherRowsSource = std::function<TeacherRows(std::span<const TrainingItem> microbatch)>;

// Sums over the valid tokens of a shard, in order of positions, or over shards in order.
struct GradientSums {
  double weighted_loss = 0;  // sum of token_weight * loss: what the gradient is of
  uint64_t tokens = 0;
  uint64_t clipped = 0, dual_clipped = 0, clamped = 0, terms = 0;
  double policy_kl = 0;
  GradientSums& operator+=(const GradientSums& other);
};

// Memory kept from one minibatch to the next of the same student and config. One minibatch at a time.
struct GradientMemory {
  std::vector<std::unique_ptr<model::TrainingPass>> passes;  // of threads
  std::vector<model::Gradients> shards;                      // behind the first one's
};

// Replaces `gradients`. Of a student that does not keep its memory (model/execution.h) nothing stays in
// `memory`.
GradientSums minibatch_gradient(model::Gradients& gradients, GradientMemory& memory,
                                const model::Weights& student, std::span<const Shard> shards,
                                const GradientConfig& config, const TeacherRowsSource& teacher = {});

// Where a minibatch is spread over ranks: the gradients of the shards `own` (indices, ascending), each one chain
// from zero, given to `take` in that order; whoever owns a part of the sum adds them in the order of shards. The
// bits are those that minibatch_gradient() adds. `make`: a gradient of what is trained.
using TakeShard =
    std::function<void(size_t shard, std::span<const float> gradient, const GradientSums& sums)>;
using MakeGradients = std::function<model::Gradients()>;
void shard_gradients(GradientMemory& memory, const MakeGradients& make, const model::Weights& student,
                     std::span<const Shard> minibatch, std::span<const size_t> own,
                     const GradientConfig& config, const TeacherRowsSource& teacher, const TakeShard& take);

// Gradients that minibatch_gradient() holds besides the one it returns.
uint64_t num_shard_gradients(const model::Execution& student, uint64_t num_shards);

}  // namespace ropd::distill
