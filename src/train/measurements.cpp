#include "train/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/memory_info.h"

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

void add_share(DistillationMeans& whole, const DistillationMeans& part, double share) {
  for (const auto mean :
       {&DistillationMeans::student_mass, &DistillationMeans::teacher_mass, &DistillationMeans::overlap,
        &DistillationMeans::kl_candidates, &DistillationMeans::kl_sampled, &DistillationMeans::entropy,
        &DistillationMeans::masked_fraction})
    whole.*mean += share * part.*mean;
}

void measure_gradient(StepRecord& record, const MinibatchGradient& gradient) {
  const distill::GradientSums& sums = gradient.sums;
  record.microbatches = gradient.microbatches;
  record.tokens = sums.tokens;
  record.loss = sums.weighted_loss;
  record.grad_norm = gradient.norm;
  const double terms = static_cast<double>(std::max<uint64_t>(sums.terms, 1));
  record.clip = {.clip_fraction = static_cast<double>(sums.clipped) / terms,
                 .dual_clip_fraction = static_cast<double>(sums.dual_clipped) / terms,
                 .clamp_fraction = static_cast<double>(sums.clamped) / terms,
                 .policy_kl = sums.policy_kl / static_cast<double>(std::max<uint64_t>(sums.tokens, 1))};
  record.skipped = !gradient.is_finite();
  record.skip_reason = gradient.not_finite;
  record.tokens_per_second =
      static_cast<double>(record.tokens) /
      std::max(record.seconds_gradient + record.seconds_trigger + record.seconds_optimizer, 1e-9);
}

void measure_steps(IterationRecord& record) {
  double counted = 0;
  for (const StepRecord& step : record.steps) {
    record.seconds.update += step.seconds_gradient + step.seconds_trigger + step.seconds_optimizer;
    if (step.skipped) continue;
    ++counted;
    record.loss += step.loss;
    record.grad_norm += step.grad_norm;
    const double share = static_cast<double>(step.sequences) / static_cast<double>(record.responses);
    record.clip.clip_fraction += share * step.clip.clip_fraction;
    record.clip.dual_clip_fraction += share * step.clip.dual_clip_fraction;
    record.clip.clamp_fraction += share * step.clip.clamp_fraction;
    record.clip.policy_kl += share * step.clip.policy_kl;
  }
  record.loss /= std::max(counted, 1.0);
  record.grad_norm /= std::max(counted, 1.0);
  const double tokens = static_cast<double>(record.response_tokens);
  record.tokens_per_second = tokens / std::max(record.seconds.total, 1e-9);
  record.score_tokens_per_second =
      tokens / std::max(record.seconds.score_student + record.seconds.score_teacher, 1e-9);
  record.update_tokens_per_second = tokens / std::max(record.seconds.update, 1e-9);
  record.peak_memory_bytes = peak_memory_bytes();
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
