#include "train/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace ropd::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Rollout response(size_t prompt, size_t length, Finish finish, uint64_t policy_step) {
  Rollout rollout;
  rollout.prompt_ids.assign(prompt, 1);
  rollout.response_ids.assign(length, 2);
  rollout.finish = finish;
  rollout.policy_step = policy_step;
  return rollout;
}

TEST(Measurements, LengthsAgesAndTruncation) {
  IterationRecord record;
  const std::vector<Rollout> rollouts = {response(2, 4, Finish::eos, 8), response(4, 10, Finish::length, 4)};
  measure_batch(record, rollouts, 8);
  EXPECT_EQ(record.responses, 2u);
  EXPECT_EQ(record.response_tokens, 14u);
  EXPECT_EQ(record.prompt_tokens, 6u);
  EXPECT_EQ(record.response_length_mean, 7);
  EXPECT_EQ(record.response_length_min, 4);
  EXPECT_EQ(record.response_length_max, 10);
  EXPECT_EQ(record.prompt_length_mean, 3);
  EXPECT_EQ(record.truncated, 0.5);
  EXPECT_EQ(record.rollout_policy_age, 2);
}

// Two positions with two candidates; the second position is masked.
struct Example {
  Scores scores;
  distill::Supervision supervision;
  Example() {
    scores.top_k = 2;
    scores.candidates = {3, 4, 5, 6};
    scores.student_logprobs = {std::log(0.6f), std::log(0.2f), -1, -1};
    scores.teacher_logprobs = {std::log(0.3f), std::log(0.4f), -1, -2};
    scores.sampled_logprobs = {std::log(0.6f), -1};
    scores.teacher_sampled_logprobs = {std::log(0.3f), -1};
    scores.student_entropy = {0.9f, 5};
    scores.overlap = {0.5f, 1};
    supervision.num_candidates = 2;
    supervision.ids = scores.candidates;
    supervision.coefficients = {-0.5f, 0.2f, 0, 0};
    supervision.is_valid = {1, 0};
  }
};

TEST(Measurements, DistillationMeansByHand) {
  const Example e;
  const auto means = measure_distillation({&e.scores, 1}, {&e.supervision, 1});
  EXPECT_NEAR(means.student_mass, 0.8, 1e-6);
  EXPECT_NEAR(means.teacher_mass, 0.7, 1e-6);
  EXPECT_NEAR(means.overlap, 0.5, 1e-6);
  EXPECT_NEAR(means.kl_candidates, (0.6 * std::log(2.0) + 0.2 * std::log(0.5)) / 0.8, 1e-6);
  EXPECT_NEAR(means.kl_sampled, std::log(2.0), 1e-6);
  EXPECT_NEAR(means.entropy, 0.9, 1e-6);
  EXPECT_EQ(means.masked_fraction, 0);
}

TEST(Measurements, CandidatesWithoutTeacherIdCountAsMaskedAndNotInTheKl) {
  Example e;
  e.scores.teacher_logprobs[1] = -INFINITY;
  e.supervision.coefficients[1] = 0;
  const auto means = measure_distillation({&e.scores, 1}, {&e.supervision, 1});
  EXPECT_NEAR(means.masked_fraction, 0.5, 1e-9);
  EXPECT_NEAR(means.kl_candidates, std::log(2.0), 1e-6);
  EXPECT_NEAR(means.teacher_mass, 0.3, 1e-6);
}

TEST(Measurements, NothingValidGivesZeros) {
  Example e;
  e.supervision.is_valid = {0, 0};
  EXPECT_EQ(measure_distillation({&e.scores, 1}, {&e.supervision, 1}).kl_candidates, 0);
}

TEST(Measurements, DriftIsBetweenTheSamePolicyOnly) {
  std::vector<Rollout> rollouts = {response(1, 2, Finish::eos, 5), response(1, 2, Finish::eos, 4)};
  rollouts[0].sampled_logprobs = {-1, -2};
  rollouts[1].sampled_logprobs = {-9, -9};
  std::vector<Scores> scores(2);
  scores[0].sampled_logprobs = {-1.5f, -2};
  scores[1].sampled_logprobs = {-1, -1};
  IterationRecord record;
  record.policy_step = 5;
  measure_drift(record, rollouts, scores);
  EXPECT_EQ(record.drift_mean, 0.25);
  EXPECT_EQ(record.drift_max, 0.5);
  IterationRecord none;
  none.policy_step = 6;
  measure_drift(none, rollouts, scores);
  EXPECT_FALSE(none.drift_mean.has_value());
}

TEST(Measurements, AStepTellsOfItsGradient) {
  StepRecord step;
  step.seconds_gradient = 3;
  step.seconds_optimizer = 2;
  measure_gradient(step, {.sums = {.weighted_loss = 3,
                                   .tokens = 10,
                                   .clipped = 4,
                                   .dual_clipped = 2,
                                   .clamped = 1,
                                   .terms = 20,
                                   .policy_kl = 5},
                          .microbatches = 2,
                          .norm = 7,
                          .not_finite = ""});
  EXPECT_EQ(step.loss, 3);
  EXPECT_EQ(step.tokens, 10u);
  EXPECT_EQ(step.grad_norm, 7);
  EXPECT_EQ(step.clip.clip_fraction, 0.2);
  EXPECT_EQ(step.clip.dual_clip_fraction, 0.1);
  EXPECT_EQ(step.clip.clamp_fraction, 0.05);
  EXPECT_EQ(step.clip.policy_kl, 0.5);
  EXPECT_EQ(step.tokens_per_second, 2);
  EXPECT_FALSE(step.skipped);
  measure_gradient(step, {.sums = {}, .microbatches = 0, .norm = NAN, .not_finite = "x is nan"});
  EXPECT_TRUE(step.skipped);
  EXPECT_EQ(step.skip_reason, "x is nan");
}

TEST(Measurements, AnIterationsMeansAreThoseOfItsStepsWithoutSkippedOnes) {
  IterationRecord record;
  record.responses = 10;
  record.response_tokens = 60;
  record.seconds.total = 30;
  record.seconds.score_student = 4;
  record.seconds.score_teacher = 6;
  StepRecord step;
  step.sequences = 8;
  step.loss = 2;
  step.grad_norm = 4;
  step.clip.clip_fraction = 0.5;
  step.seconds_gradient = 3;
  step.seconds_trigger = 0.5;
  step.seconds_optimizer = 1.5;
  record.steps = {step, step};
  record.steps[1].skipped = true;
  record.steps[1].loss = NAN;
  measure_steps(record);
  EXPECT_EQ(record.loss, 2);
  EXPECT_EQ(record.grad_norm, 4);
  EXPECT_EQ(record.clip.clip_fraction, 0.4);
  EXPECT_EQ(record.seconds.update, 10);
  EXPECT_EQ(record.tokens_per_second, 2);
  EXPECT_EQ(record.score_tokens_per_second, 6);
  EXPECT_EQ(record.update_tokens_per_second, 6);
}

TEST(Measurements, SharesOfABatchAddUp) {
  DistillationMeans whole;
  add_share(whole, {.student_mass = 1, .kl_candidates = 2}, 0.75);
  add_share(whole, {.student_mass = 0.5, .kl_candidates = 4}, 0.25);
  EXPECT_EQ(whole.student_mass, 0.875);
  EXPECT_EQ(whole.kl_candidates, 2.5);
}

TEST(Measurements, AlarmsNameWhatToLookAt) {
  const AlarmConfig config;
  IterationRecord fine;
  fine.distillation.student_mass = 0.99;
  fine.response_length_mean = 100;
  EXPECT_THAT(find_alarms(fine, config, 90.0), IsEmpty());
  IterationRecord bad = fine;
  bad.distillation.student_mass = 0.5;
  bad.response_length_mean = 400;
  bad.truncated = 0.8;
  bad.drift_mean = 0.2;
  bad.steps.push_back({.skipped = true});
  EXPECT_THAT(find_alarms(bad, config, 100.0),
              ElementsAre(HasSubstr("50.0%"), HasSubstr("4.0 times"), HasSubstr("80% of the responses"),
                          HasSubstr("0.200"), HasSubstr("1 steps skipped")));
  EXPECT_THAT(find_alarms(bad, {.student_mass = 0, .length_factor = 0, .truncation = 1, .drift = 0}, 100.0),
              ElementsAre(HasSubstr("skipped")));
}

}  // namespace
}  // namespace ropd::train
