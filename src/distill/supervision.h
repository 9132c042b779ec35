// What an iteration fixes before its first update (method.md sections 2, 3, 6): for every position of a
// response the candidate ids, the old policy's log-probabilities of them and the constants A of the
// objective.
//   A_tj = weight_tj (teacher logprob_tj - student logprob_tj)
// weight = student probabilities renormalised over the candidates that have a teacher value (student_p), the
// teacher's likewise (teacher_p), or 1 / their number (uniform).
#pragma once
#include <vector>

#include "records/rollout.h"
#include "records/scores.h"

namespace ropd::distill {

enum class ObjectiveKind {
  candidates,
  sampled_token,
  renormalized,
  tail_bucket,
  full_reverse_kl,
  full_forward_kl,
  jsd
};
enum class CandidateWeights { student_p, teacher_p, uniform };
enum class EosControl { all, none, only };  // which candidates keep their coefficient

// The paper's settings, and what is usual where it has none: the one place of these numbers.
struct ObjectiveDefaults {
  static constexpr uint32_t top_k = 16;
  static constexpr double clip = 0.2, dual_clip = 3.0, max_log_ratio = 20.0, beta = 0.5, temperature = 1.0;
};

struct ObjectiveConfig {
  ObjectiveKind kind = ObjectiveKind::candidates;
  CandidateWeights weights = CandidateWeights::student_p;
  EosControl eos = EosControl::all;
  std::vector<Token> eos_ids;
  float clip = static_cast<float>(ObjectiveDefaults::clip);
  float dual_clip = static_cast<float>(ObjectiveDefaults::dual_clip);
  float max_log_ratio = static_cast<float>(ObjectiveDefaults::max_log_ratio);
  float beta = static_cast<float>(ObjectiveDefaults::beta);  // jsd
  float student_temperature = static_cast<float>(ObjectiveDefaults::temperature);
  // used again by the full-vocabulary kinds
  float teacher_temperature = static_cast<float>(ObjectiveDefaults::temperature);
  bool needs_full_teacher() const {
    return kind == ObjectiveKind::full_reverse_kl || kind == ObjectiveKind::full_forward_kl ||
           kind == ObjectiveKind::jsd;
  }
};

// For one rollout; constant during the iteration.
struct Supervision {
  uint32_t num_candidates = 0;          // k; 1 for sampled_token
  std::vector<Token> ids;               // [response, k]
  std::vector<float> old_logprobs;      // [response, k]
  std::vector<float> coefficients;      // [response, k] A; 0 where masked
  std::vector<float> teacher_logprobs;  // [response, k]; -inf where there is none
  std::vector<uint8_t> is_valid;        // [response] the position counts in the loss
  size_t num_valid() const;
};

Supervision supervise(const Scores& scores, const Rollout& rollout, const ObjectiveConfig& config);

}  // namespace ropd::distill
