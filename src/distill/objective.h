// The objective at one position: loss and gradient at the student's logits (method.md section 3).
//   z = clamp(log pi(j) - old_j, -20, 20),  r = exp(z)
//   phi(A, r) = max(-A r, -A clip(r, 1-eps, 1+eps)), for A < 0 at most -c A
//   gradient at logit v: w (sum_{j = v} c_j - pi(v) sum_j c_j),   c_j = d phi / d log pi(j)
// and the variants users ask for. Every variant is 0 with gradient 0 where student and teacher agree.
#pragma once
#include <span>

#include "distill/supervision.h"

namespace ropd::distill {

// d phi / d log pi and phi itself, for one candidate.
struct ClippedTerm {
  float loss = 0;
  float slope = 0;
  bool is_clipped = false;  // the ratio clip stops the gradient
  bool is_dual_clipped = false;
  bool is_clamped = false;
};
ClippedTerm clipped_term(float coefficient, float log_ratio, const ObjectiveConfig& config);

// What one position adds to the record of a step.
struct PositionResult {
  double loss = 0;  // not weighted
  uint32_t clipped = 0, dual_clipped = 0, clamped = 0, terms = 0;
  double policy_kl = 0;  // sum_j pbar_old (old - new logprob)
};

// One position of a Supervision.
struct Position {
  std::span<const Token> ids;
  std::span<const float> old_logprobs;
  std::span<const float> coefficients;
  std::span<const float> teacher_logprobs;
  float weight = 0;             // of the position in the minibatch; 0 = does not count
  bool old_is_current = false;  // one minibatch in the iteration: r = 1 exactly
};

// Replaces the student's logits by weight * (gradient of the position's loss at them).
PositionResult position_gradient(std::span<float> logits, const Position& position,
                                 const ObjectiveConfig& config);

// The same for the kinds that compare whole distributions.
PositionResult full_position_gradient(std::span<float> student_logits, std::span<float> teacher_logits,
                                      const Position& position, const ObjectiveConfig& config);

}  // namespace ropd::distill
