#include "distill/objective.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "kernels/elementary.h"
#include "kernels/vocab_rows.h"

namespace ropd::distill {
namespace {

// -inf: no teacher id. A NaN passes on, so that the step is skipped.
bool has_teacher(float logprob) { return logprob != -INFINITY; }

void clear(std::span<float> logits) { std::fill(logits.begin(), logits.end(), 0.0f); }

// Gradients above are with respect to logits / temperature.
void undo_temperature(std::span<float> gradient, float temperature) {
  if (temperature != 1)
    for (float& g : gradient) g /= temperature;
}

PositionResult clipped_candidates(std::span<float> logits, const Position& position,
                                  const ObjectiveConfig& config) {
  const float log_sum_exp = kernels::row_log_sum_exp(logits);
  const size_t k = position.ids.size();
  PositionResult result;
  float slopes[256];
  assert(k <= std::size(slopes));
  double old_mass = 0;
  for (size_t j = 0; j < k; ++j) {
    const float logprob = logits[static_cast<size_t>(position.ids[j])] - log_sum_exp;
    const float log_ratio = position.old_is_current ? 0.0f : logprob - position.old_logprobs[j];
    const ClippedTerm term = clipped_term(position.coefficients[j], log_ratio, config);
    slopes[j] = term.slope;
    result.loss += term.loss;
    result.clipped += term.is_clipped;
    result.dual_clipped += term.is_dual_clipped;
    result.clamped += term.is_clamped;
    const double old_probability = std::exp(static_cast<double>(position.old_logprobs[j]));
    old_mass += old_probability;
    result.policy_kl -= old_probability * log_ratio;
  }
  result.terms = static_cast<uint32_t>(k);
  if (old_mass > 0) result.policy_kl /= old_mass;
  kernels::candidate_gradient(logits, position.ids, std::span(slopes, k), position.weight, log_sum_exp);
  return result;
}

// KL(student || teacher), both renormalised over the candidates that have a teacher value. Only their logits
// get a gradient.
PositionResult renormalized(std::span<float> logits, const Position& position) {
  const size_t k = position.ids.size();
  std::vector<double> student(k, 0.0), difference(k, 0.0);
  double highest = -INFINITY, teacher_highest = -INFINITY;
  for (size_t j = 0; j < k; ++j)
    if (has_teacher(position.teacher_logprobs[j])) {
      highest = std::max<double>(highest, logits[static_cast<size_t>(position.ids[j])]);
      teacher_highest = std::max<double>(teacher_highest, position.teacher_logprobs[j]);
    }
  double student_sum = 0, teacher_sum = 0;
  for (size_t j = 0; j < k; ++j)
    if (has_teacher(position.teacher_logprobs[j])) {
      student_sum += student[j] = std::exp(logits[static_cast<size_t>(position.ids[j])] - highest);
      teacher_sum += std::exp(position.teacher_logprobs[j] - teacher_highest);
    }
  PositionResult result;
  result.terms = static_cast<uint32_t>(k);
  if (student_sum == 0) {
    clear(logits);
    return result;
  }
  for (size_t j = 0; j < k; ++j)
    if (student[j] > 0) {
      difference[j] = logits[static_cast<size_t>(position.ids[j])] - highest - std::log(student_sum) -
                      (position.teacher_logprobs[j] - teacher_highest - std::log(teacher_sum));
      student[j] /= student_sum;
      result.loss += student[j] * difference[j];
    }
  clear(logits);
  for (size_t j = 0; j < k; ++j)
    logits[static_cast<size_t>(position.ids[j])] +=
        static_cast<float>(position.weight * student[j] * (difference[j] - result.loss));
  return result;
}

// KL over the candidates and one bucket for everything else, so that mass cannot leave the candidates unseen.
PositionResult tail_bucket(std::span<float> logits, const Position& position) {
  const size_t k = position.ids.size();
  const float log_sum_exp = kernels::row_log_sum_exp(logits);
  std::vector<double> difference(k, 0.0);
  double student_rest = 1, teacher_rest = 1;
  PositionResult result;
  result.terms = static_cast<uint32_t>(k);
  for (size_t j = 0; j < k; ++j) {
    if (!has_teacher(position.teacher_logprobs[j])) continue;  // counts to the bucket on both sides
    const double logprob = static_cast<double>(logits[static_cast<size_t>(position.ids[j])]) - log_sum_exp;
    difference[j] = logprob - position.teacher_logprobs[j];
    result.loss += std::exp(logprob) * difference[j];
    student_rest -= std::exp(logprob);
    teacher_rest -= std::exp(static_cast<double>(position.teacher_logprobs[j]));
  }
  // Rounding can leave an empty bucket slightly negative; below this it holds nothing worth a gradient.
  constexpr double kEmpty = 1e-7;
  student_rest = std::max(student_rest, kEmpty);
  teacher_rest = std::max(teacher_rest, kEmpty);
  const double rest_difference = std::log(student_rest) - std::log(teacher_rest);
  result.loss += student_rest * rest_difference;
  std::vector<float> at_candidates(k);
  for (size_t j = 0; j < k; ++j) {
    const double probability =
        std::exp(static_cast<double>(logits[static_cast<size_t>(position.ids[j])]) - log_sum_exp);
    const double value = has_teacher(position.teacher_logprobs[j]) ? difference[j] : rest_difference;
    at_candidates[j] = static_cast<float>(position.weight * probability * (value - result.loss));
  }
  kernels::row_probabilities(logits, logits, log_sum_exp);
  const float rest = static_cast<float>(position.weight * (rest_difference - result.loss));
  for (float& value : logits) value *= rest;
  for (size_t j = 0; j < k; ++j) logits[static_cast<size_t>(position.ids[j])] = at_candidates[j];
  return result;
}

}  // namespace

ClippedTerm clipped_term(float coefficient, float log_ratio, const ObjectiveConfig& config) {
  ClippedTerm term;
  term.is_clamped = std::abs(log_ratio) > config.max_log_ratio;
  const float ratio = kernels::exp(std::clamp(log_ratio, -config.max_log_ratio, config.max_log_ratio));
  const float low = 1 - config.clip, high = 1 + config.clip;
  const float plain = -coefficient * ratio, limited = -coefficient * std::clamp(ratio, low, high);
  term.loss = std::max(plain, limited);
  if (coefficient < 0) term.loss = std::min(term.loss, -config.dual_clip * coefficient);
  term.is_clipped = coefficient > 0 ? ratio > high : coefficient < 0 && ratio < low;
  term.is_dual_clipped = coefficient < 0 && ratio > config.dual_clip;
  const bool is_stopped = coefficient == 0 || term.is_clipped || term.is_dual_clipped || term.is_clamped;
  term.slope = is_stopped ? 0.0f : plain;
  return term;
}

PositionResult position_gradient(std::span<float> logits, const Position& position,
                                 const ObjectiveConfig& config) {
  if (position.weight == 0) {
    clear(logits);
    return {};
  }
  kernels::divide_by_temperature(logits, config.student_temperature);
  PositionResult result = config.kind == ObjectiveKind::renormalized ? renormalized(logits, position)
                          : config.kind == ObjectiveKind::tail_bucket
                              ? tail_bucket(logits, position)
                              : clipped_candidates(logits, position, config);
  undo_temperature(logits, config.student_temperature);
  return result;
}

PositionResult full_position_gradient(std::span<float> student_logits, std::span<float> teacher_logits,
                                      const Position& position, const ObjectiveConfig& config) {
  PositionResult result;
  if (position.weight == 0) {
    clear(student_logits);
    return result;
  }
  kernels::divide_by_temperature(student_logits, config.student_temperature);
  kernels::divide_by_temperature(teacher_logits, config.teacher_temperature);
  if (config.kind == ObjectiveKind::full_reverse_kl)
    result.loss = kernels::reverse_kl_gradient(student_logits, teacher_logits, position.weight);
  else if (config.kind == ObjectiveKind::full_forward_kl)
    result.loss = kernels::forward_kl_gradient(student_logits, teacher_logits, position.weight);
  else
    result.loss =
        kernels::jensen_shannon_gradient(student_logits, teacher_logits, config.beta, position.weight);
  result.terms = 1;
  undo_temperature(student_logits, config.student_temperature);
  return result;
}

}  // namespace ropd::distill
