#include "distill/supervision.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ropd::distill {
namespace {

// One position, three candidates with student probabilities 0.5, 0.2, 0.1.
Scores one_position(std::vector<float> teacher) {
  Scores scores;
  scores.top_k = 3;
  scores.candidates = {7, 2, 9};
  scores.student_logprobs = {std::log(0.5f), std::log(0.2f), std::log(0.1f)};
  scores.teacher_logprobs = std::move(teacher);
  scores.sampled_logprobs = {std::log(0.2f)};
  scores.teacher_sampled_logprobs = {std::log(0.6f)};
  return scores;
}
const Rollout kRollout = {.prompt_ids = {1}, .response_ids = {2}};

TEST(Supervise, WeighsByTheRenormalisedStudent) {
  const auto s = supervise(one_position({std::log(0.25f), std::log(0.6f), std::log(0.1f)}), kRollout, {});
  EXPECT_NEAR(s.coefficients[0], 0.5 / 0.8 * std::log(0.5), 1e-6);
  EXPECT_NEAR(s.coefficients[1], 0.2 / 0.8 * std::log(3.0), 1e-6);
  EXPECT_EQ(s.coefficients[2], 0.0f);
}

TEST(Supervise, WithOneCandidateTheCoefficientIsTheDifference) {
  Scores scores = one_position({});
  scores.top_k = 1;
  scores.candidates = {7};
  scores.student_logprobs = {-1.0f};
  scores.teacher_logprobs = {-3.0f};
  EXPECT_EQ(supervise(scores, kRollout, {}).coefficients[0], -2.0f);
}

TEST(Supervise, LeavesOutCandidatesWithoutTeacherAndRenormalises) {
  const auto s = supervise(one_position({-INFINITY, std::log(0.6f), std::log(0.2f)}), kRollout, {});
  EXPECT_EQ(s.coefficients[0], 0.0f);
  EXPECT_NEAR(s.coefficients[1], 0.2 / 0.3 * std::log(3.0), 1e-6);
  EXPECT_NEAR(s.coefficients[2], 0.1 / 0.3 * std::log(2.0), 1e-6);
}

TEST(Supervise, OtherWeights) {
  const std::vector<float> teacher = {std::log(0.25f), std::log(0.6f), std::log(0.1f)};
  const auto by_teacher =
      supervise(one_position(teacher), kRollout, {.weights = CandidateWeights::teacher_p});
  EXPECT_NEAR(by_teacher.coefficients[1], 0.6 / 0.95 * std::log(3.0), 1e-6);
  const auto uniform = supervise(one_position(teacher), kRollout, {.weights = CandidateWeights::uniform});
  EXPECT_NEAR(uniform.coefficients[0], std::log(0.5) / 3, 1e-6);
}

TEST(Supervise, EosControlsActOnCoefficientsOnly) {
  const std::vector<float> teacher = {std::log(0.25f), std::log(0.6f), std::log(0.2f)};
  const auto all = supervise(one_position(teacher), kRollout, {.eos_ids = {2}});
  const auto none = supervise(one_position(teacher), kRollout, {.eos = EosControl::none, .eos_ids = {2}});
  const auto only = supervise(one_position(teacher), kRollout, {.eos = EosControl::only, .eos_ids = {2}});
  EXPECT_EQ(none.coefficients, (std::vector<float>{all.coefficients[0], 0, all.coefficients[2]}));
  EXPECT_EQ(only.coefficients, (std::vector<float>{0, all.coefficients[1], 0}));
  EXPECT_EQ(none.ids, all.ids);
}

TEST(Supervise, SampledTokenUsesTheRecordedToken) {
  const auto s = supervise(one_position({}), kRollout, {.kind = ObjectiveKind::sampled_token});
  EXPECT_EQ(s.num_candidates, 1u);
  EXPECT_EQ(s.ids, (std::vector<Token>{2}));
  EXPECT_NEAR(s.coefficients[0], std::log(3.0), 1e-6);
}

TEST(Supervise, UnalignedPositionsDoNotCount) {
  Scores scores = one_position({-1, -1, -1});
  scores.is_aligned = {0};
  const auto s = supervise(scores, kRollout, {});
  EXPECT_EQ(s.num_valid(), 0u);
  EXPECT_EQ(s.coefficients, (std::vector<float>{0, 0, 0}));
}

TEST(Supervise, IsExactlyZeroWhenModelsAgree) {
  Scores scores = one_position({});
  scores.teacher_logprobs = scores.student_logprobs;
  for (const float a : supervise(scores, kRollout, {}).coefficients) EXPECT_EQ(a, 0.0f);
}

}  // namespace
}  // namespace ropd::distill
