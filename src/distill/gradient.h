// The gradient of the objective over one microbatch: forward, objective at every response position, backward.
#pragma once
#include <span>
#include <vector>

#include "distill/objective.h"
#include "kernels/vocab_head.h"
#include "model/forward.h"

namespace ropd::distill {

// One response of a microbatch. `token_weight` is what the reduction gives each of its valid tokens
// (method.md section 4).
struct TrainingItem {
  const Rollout* rollout = nullptr;
  const Supervision* supervision = nullptr;
  float token_weight = 0;
};

struct GradientConfig {
  ObjectiveConfig objective;
  bool old_is_current = false;  // the iteration has one minibatch
  size_t head_scratch_bytes = kernels::kVocabScratchBytes;
};

// Sums over the microbatch, in order of positions.
struct MicrobatchResult {
  double weighted_loss = 0;  // sum of token_weight * loss: what the gradient is of
  uint64_t tokens = 0;       // valid
  uint64_t clipped = 0, dual_clipped = 0, clamped = 0, terms = 0;
  double policy_kl = 0;  // summed over tokens

  MicrobatchResult& operator+=(const MicrobatchResult& other);
};

// The teacher for the objectives that compare whole distributions: its states after the last norm that
// predict each response token, item after item, and what turns them into logits.
struct TeacherRows {
  Buffer states;                  // [sum of responses, D of the teacher]
  kernels::WeightView head = {};  // [V, D of the teacher]
  kernels::Precision precision = kernels::Precision::f32;
};

// Of a teacher in this process, by one packed pass.
TeacherRows teacher_rows(const model::Weights& teacher, std::span<const TrainingItem> items,
                         kernels::Precision precision, model::Workspace& workspace);

// Adds to gradients. `pass` must belong to `student`. `teacher` is read where the objective needs it.
MicrobatchResult accumulate_gradient(model::Gradients& gradients, model::TrainingPass& pass,
                                     const model::Weights& student, std::span<const TrainingItem> items,
                                     const GradientConfig& config, kernels::Precision precision,
                                     const TeacherRows& teacher = {});

}  // namespace ropd::distill
