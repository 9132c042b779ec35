#include "rollout/sampling_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ropd::rollout {
namespace {

TEST(SamplingScores, KeepTheLikeliestTokensOfEveryPositionAndTheDrawnOne) {
  SamplingScores scores(2, 2);
  const std::vector<float> first = {0, 2, 1}, second = {3, 0, 3};
  scores.add(1, 0, first);
  scores.add(1, 2, second);
  const Scores found = scores.take(1);
  EXPECT_EQ(found.top_k, 2u);
  EXPECT_EQ(found.candidates, (std::vector<Token>{1, 2, 0, 2})) << "ties to the lower id";
  const float sum = std::log(1 + std::exp(2.0f) + std::exp(1.0f));
  EXPECT_NEAR(found.student_logprobs[0], 2 - sum, 1e-6);
  EXPECT_NEAR(found.sampled_logprobs[0], -sum, 1e-6);
  EXPECT_EQ(found.sampled_logprobs[1], found.student_logprobs[3]);
  EXPECT_EQ(found.student_entropy.size(), 2u);
  EXPECT_TRUE(scores.take(0).candidates.empty());
}

}  // namespace
}  // namespace ropd::rollout
