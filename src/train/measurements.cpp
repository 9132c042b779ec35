#include "train/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ropd::train {

void measure_batch(IterationRecord& record, std::span<const Rollout> rollouts, uint64_t policy_step) {
  record.responses = static_cast<uint32_t>(rollouts.size());
  double age = 0, truncated = 0;
  record.response_length_min = INFINITY;
  for (const Rollout& rollout : rollouts) {
    const double length = static_cast<double>(rollout.response_ids.size());
    record.response_tokens += rollout.response_ids.size();
    record.prompt_tokens += rollout.prompt_ids.size();
    record.response_length_min = std::min(record.response_length_min, length);
    record.response_length_max = std::max(record.response_length_max, length);
    truncated += rollout.finish == Finish::length;
    age += static_cast<double>(policy_step) - static_cast<double>(std::min(policy_step, rollout.policy_step));
  }
  const double count = static_cast<double>(rollouts.size());
  record.response_length_mean = static_cast<double>(record.response_tokens) / count;
  record.prompt_length_mean = static_cast<double>(record.prompt_tokens) / count;
  record.truncated = truncated / count;
  record.rollout_policy_age = age / count;
}

DistillationMeans measure_distillation(std::span<const Scores> scores,
                                       std::span<const distill::Supervision> supervision) {
  DistillationMeans sum;
  double positions = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const Scores& s = scores[i];
    const size_t k = s.top_k;
    for (size_t t = 0; t < supervision[i].is_valid.size(); ++t) {
      if (!supervision[i].is_valid[t]) continue;
      ++positions;
      double student_mass = 0, teacher_mass = 0, kept_mass = 0, difference = 0, masked = 0;
      for (size_t j = 0; j < k; ++j) {
        const double student = std::exp(static_cast<double>(s.student_logprobs[t * k + j]));
        const double teacher_logprob = s.teacher_logprobs[t * k + j];
        student_mass += student;
        teacher_mass += std::exp(teacher_logprob);
        if (std::isfinite(teacher_logprob)) {
          kept_mass += student;
          difference += student * (s.student_logprobs[t * k + j] - teacher_logprob);
        }
        const bool has_coefficient =
            k != supervision[i].num_candidates || supervision[i].coefficients[t * k + j] != 0;
        masked += !has_coefficient && s.student_logprobs[t * k + j] != static_cast<float>(teacher_logprob);
      }
      sum.student_mass += student_mass;
      sum.teacher_mass += teacher_mass;
      if (kept_mass > 0) sum.kl_candidates += difference / kept_mass;
      if (k > 0) {
        sum.overlap += s.overlap[t];
        sum.masked_fraction += masked / static_cast<double>(k);
      }
      if (std::isfinite(s.teacher_sampled_logprobs[t]))
        sum.kl_sampled += s.sampled_logprobs[t] - s.teacher_sampled_logprobs[t];
      sum.entropy += s.student_entropy[t];
    }
  }
  for (double* mean : {&sum.student_mass, &sum.teacher_mass, &sum.overlap, &sum.kl_candidates,
                       &sum.kl_sampled, &sum.entropy, &sum.masked_fraction})
    *mean /= std::max(positions, 1.0);
  return sum;
}

void measure_drift(IterationRecord& record, std::span<const Rollout> rollouts,
                   std::span<const Scores> scores) {
  double sum = 0, largest = 0, count = 0;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    if (rollouts[i].policy_step != record.policy_step) continue;
    for (size_t t = 0; t < rollouts[i].sampled_logprobs.size(); ++t) {
      const double drift =
          std::abs(static_cast<double>(rollouts[i].sampled_logprobs[t]) - scores[i].sampled_logprobs[t]);
      sum += drift;
      largest = std::max(largest, drift);
      ++count;
    }
  }
  if (count == 0) return;
  record.drift_mean = sum / count;
  record.drift_max = largest;
}

std::vector<std::string> find_alarms(const IterationRecord& record, const AlarmConfig& config,
                                     std::optional<double> first_length_mean) {
  std::vector<std::string> alarms;
  if (record.distillation.student_mass > 0 && record.distillation.student_mass < config.student_mass)
    alarms.push_back(
        fmt::format("only {:.1f}% of the student's probability is inside its candidates (objective.top_k)",
                    100 * record.distillation.student_mass));
  if (config.length_factor > 0 && first_length_mean &&
      record.response_length_mean > config.length_factor * *first_length_mean)
    alarms.push_back(fmt::format("mean response length {:.0f} is {:.1f} times that of the first iteration",
                                 record.response_length_mean,
                                 record.response_length_mean / *first_length_mean));
  if (record.truncated > config.truncation)
    alarms.push_back(
        fmt::format("{:.0f}% of the responses are cut at the limit (EOS ids, rollout.max_response_tokens)",
                    100 * record.truncated));
  if (config.drift > 0 && record.drift_mean && *record.drift_mean > config.drift)
    alarms.push_back(
        fmt::format("rollout and trainer log-probabilities differ by {:.3f} on average", *record.drift_mean));
  uint64_t skipped = 0;
  for (const StepRecord& step : record.steps) skipped += step.skipped;
  if (skipped > 0) alarms.push_back(fmt::format("{} steps skipped: gradient not finite", skipped));
  return alarms;
}

}  // namespace ropd::train
