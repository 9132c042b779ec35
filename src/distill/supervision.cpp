#include "distill/supervision.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ropd::distill {
namespace {

// The weights of one position's candidates; those without a teacher value (-inf) get none. A NaN passes on: a
// broken teacher must end in a skipped step, not in silence.
void candidate_weights(std::vector<double>& weights, const float* student, const float* teacher, size_t k,
                       CandidateWeights kind) {
  double sum = 0;
  for (size_t j = 0; j < k; ++j) {
    const double logprob = kind == CandidateWeights::teacher_p ? teacher[j] : student[j];
    weights[j] = teacher[j] == -INFINITY ? 0.0 : kind == CandidateWeights::uniform ? 1.0 : std::exp(logprob);
    sum += weights[j];
  }
  if (sum > 0)
    for (size_t j = 0; j < k; ++j) weights[j] /= sum;
}

}  // namespace

size_t Supervision::num_valid() const {
  return static_cast<size_t>(std::count(is_valid.begin(), is_valid.end(), 1));
}

Supervision supervise(const Scores& scores, const Rollout& rollout, const ObjectiveConfig& config) {
  const size_t length = rollout.response_ids.size();
  Supervision result;
  result.is_valid = scores.is_aligned.empty() ? std::vector<uint8_t>(length, 1) : scores.is_aligned;
  if (config.kind == ObjectiveKind::sampled_token) {
    result.num_candidates = 1;
    result.ids = rollout.response_ids;
    result.old_logprobs = scores.sampled_logprobs;
    result.teacher_logprobs = scores.teacher_sampled_logprobs;
  } else {
    result.num_candidates = scores.top_k;
    result.ids = scores.candidates;
    result.old_logprobs = scores.student_logprobs;
    result.teacher_logprobs = scores.teacher_logprobs;
  }
  const size_t k = result.num_candidates;
  result.coefficients.assign(length * k, 0.0f);
  assert(result.teacher_logprobs.size() == length * k);
  std::vector<double> weights(k);
  for (size_t t = 0; t < length; ++t) {
    if (!result.is_valid[t]) continue;
    const float* student = result.old_logprobs.data() + t * k;
    const float* teacher = result.teacher_logprobs.data() + t * k;
    candidate_weights(weights, student, teacher, k, config.weights);
    for (size_t j = 0; j < k; ++j) {
      const bool is_eos = std::find(config.eos_ids.begin(), config.eos_ids.end(), result.ids[t * k + j]) !=
                          config.eos_ids.end();
      const bool is_masked =
          (config.eos == EosControl::none && is_eos) || (config.eos == EosControl::only && !is_eos);
      if (is_masked || weights[j] == 0) continue;
      result.coefficients[t * k + j] =
          static_cast<float>(weights[j] * (static_cast<double>(teacher[j]) - student[j]));
    }
  }
  return result;
}

}  // namespace ropd::distill
