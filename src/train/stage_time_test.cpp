#include "train/stage_time.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/hf_config.h"
#include "support/paper_models.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

// A second for every token in every pass; steps of decoding 1, 3 and 5 s with 1, 3 and 4 sequences.
StageSpeeds round_speeds() {
  return {.student = {0.75, 0.25},
          .teacher = {0.75, 0.25},
          .update = {0.75, 0.25},
          .decode = {{1, 1}, {3, 3}, {4, 5}},
          .attention_flops = 1e30,
          .attention_grad_flops = 1e30,
          .memory_bytes = 1e30,
          .disk_bytes = 1e30};
}

class StageTime : public testing::Test {
 protected:
  TrainConfig config(std::vector<std::string> changes = {}) const {
    changes.push_back("data.max_prompt_tokens=4");
    changes.push_back("rollout.memory_gb=1");
    return world_.config("run", std::move(changes));
  }
  double sampling(double responses, double tokens, std::vector<std::string> changes = {}) const {
    changes.push_back("rollout.max_response_tokens=1000");
    const double prompts = responses * 4 * 0.75;
    return sampling_seconds(config(std::move(changes)), student_, round_speeds(), responses, tokens) -
           prompts;
  }
  StageSeconds stages(const StageSpeeds& speeds, const StageWork& work,
                      std::vector<std::string> changes = {}) const {
    return stage_seconds(config(std::move(changes)), student_, student_, speeds, work);
  }
  const test::TinyWorld world_;
  const ModelConfig student_ = io::parse_model_config(test::kPaperModels.at("Qwen3-0.6B"), "config.json");
};

TEST_F(StageTime, CountsTheParametersThatATokenPasses) {
  EXPECT_EQ(block_parameters(student_), 28.0 * 1024 * (128 * 48 + 3 * 3072));
  EXPECT_EQ(head_parameters(student_), 151936.0 * 1024);
  ModelConfig experts = student_;
  experts.num_layers = 2;
  experts.num_experts = 128;
  experts.num_experts_per_token = 8;
  experts.moe_intermediate_size = 768;
  experts.is_moe_layer = {true, false};
  EXPECT_EQ(block_parameters(experts), 1024.0 * (2 * 128 * 48 + 3 * 8 * 768 + 3 * 3072));
}

TEST(ResponseLengths, EndLikeTokensThatMightEachBeTheLastUpToTheLongest) {
  const ResponseLengths free(12, 1e6);
  EXPECT_DOUBLE_EQ(free.scale, 12);
  EXPECT_DOUBLE_EQ(free.look_back, 12) << "most tokens belong to long responses";
  const ResponseLengths equal(1000, 1000);
  EXPECT_TRUE(std::isinf(equal.scale));
  EXPECT_DOUBLE_EQ(equal.look_back, 500);
  // Half of the longest on average: counted out token by token.
  const ResponseLengths cut(500, 1000);
  double tokens = 0, looks = 0;
  for (int t = 0; t < 1000; ++t) {
    const double going_on = std::exp(-(t + 0.5) / cut.scale);
    tokens += going_on;
    looks += going_on * (t + 0.5);
  }
  EXPECT_NEAR(tokens, 500, 1e-3);
  EXPECT_NEAR(cut.look_back, looks / tokens, 1e-3);
  EXPECT_NEAR(ResponseLengths(999.9, 1000).look_back, 500, 0.1);
}

TEST_F(StageTime, SamplingEndsOneAfterTheOther) {
  EXPECT_DOUBLE_EQ(sampling(1, 12), 12 * 1);
  // Three are left for 12 / 3 steps, two for 12 / 2, one for 12.
  EXPECT_DOUBLE_EQ(sampling(3, 12), 4 * 3 + 6 * 2 + 12 * 1);
  EXPECT_DOUBLE_EQ(sampling(4, 12), 3 * 5 + 4 * 3 + 6 * 2 + 12 * 1);
  // More sequences than were tried take longer in proportion.
  EXPECT_DOUBLE_EQ(sampling(8, 12) - sampling(7, 12), 1.5 * 5 * 2);
  // None is longer than allowed: with 1000 tokens on average all end together.
  EXPECT_DOUBLE_EQ(sampling(1, 4000), 1000);
}

TEST_F(StageTime, WhatDoesNotFitIntoTheCacheWaits) {
  // 28 layers, keys and values of 8 heads of 128: 229 KB a token in f32, and a context of 16 tokens.
  const double bytes = 28 * 2 * 8 * 128 * 4;
  const double prompts = 6 * 4 * 0.75;
  auto config = this->config({"rollout.max_response_tokens=1000"});
  config.rollout.memory_gb.value = 3.5 * bytes * 16 / 1e9;
  EXPECT_DOUBLE_EQ(sampling_seconds(config, student_, round_speeds(), 6, 12) - prompts,
                   3 * 4 * 3 + sampling(3, 12));
}

TEST_F(StageTime, PassesCountPromptsInBlocksAndResponsesInTheHead) {
  const StageSeconds s = stages(round_speeds(), {.response_tokens = 6}, {"rollout.precision=bf16"});
  EXPECT_DOUBLE_EQ(s.student, 10 * (10 * 0.75 + 6 * 0.25));
  EXPECT_DOUBLE_EQ(s.teacher, s.student);
  EXPECT_NEAR(s.updates, s.student, 1e-9);
  EXPECT_DOUBLE_EQ(s.sum(), s.sampling + s.student + s.teacher + s.updates);
  // Layers that are computed again cost a pass through the blocks.
  EXPECT_NEAR(stages(round_speeds(), {.response_tokens = 6, .recomputed_layers = 0.5}).updates,
              s.updates + 0.5 * 100 * 0.75, 1e-9);
}

TEST_F(StageTime, ScoresOfSamplingAreUsedWhereBothRoundAlike) {
  EXPECT_EQ(stages(round_speeds(), {.response_tokens = 6}).student, 0);
  EXPECT_GT(stages(round_speeds(), {.response_tokens = 6}, {"train.rescore=minibatch"}).student, 0);
  const StageSeconds replay =
      stages(round_speeds(), {.response_tokens = 6}, {"curriculum.stages=[{source: bank, path: b.jsonl}]"});
  EXPECT_EQ(replay.sampling, 0);
  EXPECT_GT(replay.student, 0);
}

TEST_F(StageTime, AttentionAndStateCostTheirOperationsAndBytes) {
  StageSpeeds speeds = round_speeds();
  const std::vector<std::string> changes = {"rollout.precision=bf16", "rollout.max_response_tokens=1000000"};
  const StageWork work{.response_tokens = 1512 - 4};
  const StageSeconds without = stages(speeds, work, changes);
  speeds.attention_flops = 1e12;
  speeds.attention_grad_flops = 5e11;
  const StageSeconds with = stages(speeds, work, changes);
  // 28 layers, 16 heads of 128: 1,000 positions beyond half of a trial's tokens, 10 * 1512 times.
  const double attention = 10 * 1512.0 * 4 * 28 * 16 * 128 * 1000 / 1e12;
  EXPECT_NEAR(with.teacher - without.teacher, attention, 1e-6 * attention);
  EXPECT_NEAR(with.updates - without.updates, (1 + 2.5 * 2) * attention, 1e-6 * attention);
  // Responses that all have the longest length look back over half of it: 4 + 754 - 512 instead of 1,000.
  const std::vector<std::string> equal = {"rollout.precision=bf16", "rollout.max_response_tokens=1508"};
  EXPECT_NEAR(stages(speeds, work, equal).teacher - without.teacher, 0.246 * attention, 1e-6 * attention);
  speeds = round_speeds();
  speeds.memory_bytes = speeds.disk_bytes = 1e6;
  const StageSeconds state = stages(
      speeds, {.response_tokens = 6, .parameters = 1'000'000, .is_watched = true, .scratch_bytes = 500'000},
      changes);
  // Three updates; one shard.
  EXPECT_NEAR(state.updates - stages(round_speeds(), {.response_tokens = 6}, changes).updates,
              3 * ((7 + 3 + 6) * 4 + 0.5), 1e-6);
}

TEST_F(StageTime, AGuessFollowsTheSpeedOfProducts) {
  const StageSpeeds slow = guessed_speeds(student_, student_, 1e11, false),
                    fast = guessed_speeds(student_, student_, 2e11, false);
  EXPECT_DOUBLE_EQ(slow.teacher.blocks, 2 * block_parameters(student_) / 1e11);
  EXPECT_DOUBLE_EQ(slow.update.head, 3 * 2 * head_parameters(student_) / 1e11);
  EXPECT_DOUBLE_EQ(fast.student.blocks, slow.student.blocks / 2);
  EXPECT_LT(guessed_speeds(student_, student_, 1e11, true).update.blocks, slow.update.blocks);
  EXPECT_EQ(slow.decode.front().seconds, fast.decode.front().seconds) << "one sequence waits for memory";
  EXPECT_DOUBLE_EQ(slow.decode.back().seconds, 2 * fast.decode.back().seconds);
}

}  // namespace
}  // namespace ropd::train
