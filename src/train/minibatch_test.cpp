#include "train/minibatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ropd::train {
namespace {

using testing::ElementsAre;

// Responses of given lengths behind prompts of one token; the last `masked` positions of each do not count.
struct Batch {
  std::vector<Rollout> rollouts;
  std::vector<distill::Supervision> supervision;
  std::vector<ScoredRollout> scored;
  explicit Batch(const std::vector<size_t>& lengths, size_t masked = 0) {
    for (const size_t length : lengths) {
      Rollout rollout;
      rollout.prompt_ids = {1};
      rollout.response_ids.assign(length, 2);
      rollouts.push_back(rollout);
      distill::Supervision s;
      s.is_valid.assign(length, 1);
      for (size_t i = 0; i < masked; ++i) s.is_valid[length - 1 - i] = 0;
      supervision.push_back(s);
    }
    for (size_t i = 0; i < rollouts.size(); ++i)
      scored.push_back({&rollouts[i], &supervision[i], static_cast<uint32_t>(i % 2)});
  }
};

TrainConfig config_of(Reduction reduction, uint64_t minibatch, uint64_t microbatch_tokens,
                      uint64_t shards = 1) {
  TrainConfig config;
  config.train.shards = shards;
  config.train.reduction = reduction;
  config.train.minibatch = minibatch;
  config.train.microbatch_tokens = microbatch_tokens;
  return config;
}

// Of every microbatch, one shard behind the other.
std::vector<std::vector<float>> weights_of(const std::vector<distill::Shard>& shards) {
  std::vector<std::vector<float>> weights;
  for (const distill::Shard& shard : shards)
    for (const distill::Microbatch& microbatch : shard) {
      weights.emplace_back();
      for (const auto& item : microbatch) weights.back().push_back(item.token_weight);
    }
  return weights;
}

TEST(Minibatch, DynamicMicrobatchWeighsEachTokenMeanByItsSequences) {
  // Packed by 10 tokens with prompts: (3 + 1) + (5 + 1) fill the first, 9 + 1 the second. Three of four
  // nominal.
  const Batch batch({3, 5, 9});
  const auto weights = weights_of(pack_shards(batch.scored, config_of(Reduction::dynamic_microbatch, 4, 10)));
  EXPECT_THAT(weights, ElementsAre(ElementsAre(2.0f / 4 / 8, 2.0f / 4 / 8), ElementsAre(1.0f / 4 / 9)));
}

TEST(Minibatch, AShardPacksItsOwnMicrobatches) {
  // Without shards 3 and 5 would share a microbatch; with two the first has one sequence, the second two.
  const Batch batch({3, 5, 4});
  const auto weights =
      weights_of(pack_shards(batch.scored, config_of(Reduction::dynamic_microbatch, 4, 100, 2)));
  EXPECT_THAT(weights, ElementsAre(ElementsAre(1.0f / 4 / 3), ElementsAre(2.0f / 4 / 9, 2.0f / 4 / 9)));
}

TEST(Minibatch, ShardsAreConsecutiveAndEmptyOnesAreLeftOut) {
  using Range = std::pair<size_t, size_t>;
  EXPECT_THAT(shard_ranges(128, 8), testing::SizeIs(8));
  EXPECT_THAT(shard_ranges(7, 3), ElementsAre(Range(0, 2), Range(2, 4), Range(4, 7)));
  EXPECT_THAT(shard_ranges(3, 8), ElementsAre(Range(0, 1), Range(1, 2), Range(2, 3)));
  EXPECT_THAT(shard_ranges(5, 1), ElementsAre(Range(0, 5)));
}

TEST(Minibatch, MinibatchTokensIsOneTokenMeanTimesTheShortFactorInEveryPackingAndNumberOfShards) {
  const Batch batch({3, 5, 9}, 1);  // 2 + 4 + 8 valid tokens
  const float expected = 3.0f / 4 / 14;
  for (const uint64_t shards : {1, 2, 8})
    for (const uint64_t tokens : {1, 10, 1000})
      for (const auto& microbatch :
           weights_of(pack_shards(batch.scored, config_of(Reduction::minibatch_tokens, 4, tokens, shards))))
        EXPECT_THAT(microbatch, testing::Each(expected));
}

TEST(Minibatch, SourceBalancedGivesEachSourceHalf) {
  const Batch batch({3, 5, 9, 1});  // source 0: 3 + 9 tokens, source 1: 5 + 1
  const auto weights = weights_of(pack_shards(batch.scored, config_of(Reduction::source_balanced, 8, 1000)));
  EXPECT_THAT(weights,
              ElementsAre(ElementsAre(0.5f * 0.5f / 12, 0.5f * 0.5f / 6, 0.5f * 0.5f / 12, 0.5f * 0.5f / 6)));
}

TEST(Minibatch, TheShortOneOf480Carries96Of128) {
  EXPECT_THAT(minibatch_sizes(480, 128), ElementsAre(128, 128, 128, 96));
  EXPECT_THAT(minibatch_sizes(128, 128), ElementsAre(128));
  const Batch batch(std::vector<size_t>(96, 2));
  double sum = 0;
  for (const auto& microbatch :
       weights_of(pack_shards(batch.scored, config_of(Reduction::dynamic_microbatch, 128, 30))))
    for (const float weight : microbatch) sum += 2.0 * weight;
  EXPECT_NEAR(sum, 0.75, 1e-6);
}

TEST(Minibatch, AResponseWithoutValidPositionsLeavesTheOthersTheirWeights) {
  const Batch batch({4, 1}, 1);  // 3 and 0 valid positions, each response a microbatch of its own
  const auto weights = weights_of(pack_shards(batch.scored, config_of(Reduction::dynamic_microbatch, 2, 5)));
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_THAT(weights[0], ElementsAre(1.0f / 2 / 3));
  EXPECT_TRUE(std::isfinite(weights[1][0])) << "meets no position, but must not be 1 / 0";
  for (const auto reduction : {Reduction::minibatch_tokens, Reduction::source_balanced}) {
    const Batch nothing({1, 1}, 1);
    for (const auto& microbatch : weights_of(pack_shards(nothing.scored, config_of(reduction, 2, 5))))
      for (const float weight : microbatch) EXPECT_TRUE(std::isfinite(weight));
  }
}

}  // namespace
}  // namespace ropd::train
