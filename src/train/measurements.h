// The numbers of a batch that people watch: lengths, truncation, how student and teacher meet on the
// candidates, drift between rollout and trainer.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "distill/supervision.h"
#include "records/metrics.h"
#include "records/rollout.h"
#include "records/scores.h"
#include "train/learner.h"
#include "train/train_config.h"

namespace ropd::train {

void measure_batch(IterationRecord& record, std::span<const Rollout> rollouts, uint64_t policy_step);

// Means over all valid response tokens, in order.
DistillationMeans measure_distillation(std::span<const Scores> scores,
                                       std::span<const distill::Supervision> supervision);

// The means of `part`, which holds `share` of the batch, as a part of those of the whole.
void add_share(DistillationMeans& whole, const DistillationMeans& part, double share);

// |rollout - trainer log-probability| of sampled tokens, where rollouts carry theirs and come from the
// student of record.policy_step.
void measure_drift(IterationRecord& record, std::span<const Rollout> rollouts,
                   std::span<const Scores> scores);

// What a minibatch's gradient tells of its step, whose seconds are known: loss, norm, clip shares, why it was
// skipped, tokens a second.
void measure_gradient(StepRecord& record, const MinibatchGradient& gradient);

// Means and rates of an iteration whose steps are all there.
void measure_steps(IterationRecord& record);

// What a person should look at, a sentence each.
std::vector<std::string> find_alarms(const IterationRecord& record, const AlarmConfig& config,
                                     std::optional<double> first_length_mean);

}  // namespace ropd::train
