#include "distill/early_scores.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "comm/thread_world.h"
#include "distill/local_scorer.h"
#include "model/layer_stream.h"
#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::distill {
namespace {

class EarlyScoring : public testing::TestWithParam<int> {
 protected:
  const model::Parameters student_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 1),
                          teacher_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 2);
  std::vector<Rollout> rollouts_;

  EarlyScoring() {
    for (Token i = 0; i < 20; ++i)
      rollouts_.push_back(
          {.query_id = "q", .sample = static_cast<uint32_t>(i), .prompt_ids = {1}, .response_ids = {i, 2}});
  }
  LocalScorer make() const {
    return {[this] { return student_.weights(); },
            [this] { return teacher_.weights(); },
            std::nullopt,
            {.student = {.top_k = 5}, .teacher = {.top_k = 5}}};
  }
};
INSTANTIATE_TEST_SUITE_P(ScoringRanks, EarlyScoring, testing::Values(1, 2, 3));

TEST_P(EarlyScoring, GivesTheScoresOfTheSameTokensOnce) {
  const int leaders_side = 2, scorers = GetParam();
  const auto expected = make().score(rollouts_, {}).scores;
  comm::run_thread_world(leaders_side + scorers, [&](comm::World& world) {
    if (world.rank() >= leaders_side) {
      LocalScorer own = make();
      for (int round = 0; round < 2; ++round) serve_early_scores(world, own);
      return;
    }
    if (world.rank() > 0) return;
    EarlyScores early(world, leaders_side);
    for (int round = 0; round < 2; ++round) {
      early.begin();
      for (const Rollout& rollout : rollouts_) early.offer(rollout);
      while (early.num_known() < rollouts_.size()) std::this_thread::yield();
      early.end();
      for (size_t i = 0; i < rollouts_.size(); ++i) {
        const auto found = early.take(rollouts_[i]);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->sample, i);
        EXPECT_EQ(found->candidates, expected[i].candidates);
        EXPECT_EQ(found->student_logprobs, expected[i].student_logprobs);
        EXPECT_EQ(found->teacher_logprobs, expected[i].teacher_logprobs);
        EXPECT_FALSE(early.take(rollouts_[i]));
      }
    }
  });
}

TEST_P(EarlyScoring, KeepsWhatSamplingGaveAndAddsTheTeachersSide) {
  const auto expected = make().score(rollouts_, {}).scores;
  auto sampled = expected;
  for (Scores& scores : sampled) {
    scores.student_entropy[0] = 77;
    scores.teacher_logprobs.clear();
  }
  comm::run_thread_world(1 + GetParam(), [&](comm::World& world) {
    if (world.rank() > 0) {
      LocalScorer own = make();
      return serve_early_scores(world, own);
    }
    EarlyScores early(world, 1);
    early.begin();
    for (size_t i = 0; i < rollouts_.size(); ++i) early.offer(rollouts_[i], &sampled[i]);
    while (early.num_known() < rollouts_.size()) std::this_thread::yield();
    early.end();
    for (size_t i = 0; i < rollouts_.size(); ++i) {
      const auto found = early.take(rollouts_[i]);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->student_entropy[0], 77);
      EXPECT_EQ(found->teacher_logprobs, expected[i].teacher_logprobs);
      EXPECT_EQ(found->teacher_sampled_logprobs, expected[i].teacher_sampled_logprobs);
    }
  });
}

TEST(EarlyScores, AStreamedTeacherWaitsForAWholePass) {
  const test::TemporaryDirectory folder;
  test::write_tiny_model(folder / "model", test::tiny_config("Qwen3ForCausalLM"));
  const auto directory = std::make_shared<const io::ModelDirectory>(folder / "model");
  const model::Weights resident = model::map_weights(directory);
  comm::run_thread_world(2, [&](comm::World& world) {
    const model::Weights streamed = model::stream_weights(directory, 0);
    const ScoringConfig config{.top_k = 5, .batch_tokens = 16};  // a pass of 16 positions
    LocalScorer own([&] { return resident; }, [&] { return streamed; }, std::nullopt,
                    {.student = config, .teacher = config});
    if (world.rank() > 0) {
      serve_early_scores(world, own);
      EXPECT_EQ(own.streamed().passes, 2u);
      return;
    }
    EarlyScores early(world, 1);
    early.begin();
    for (Token i = 0; i < 11; ++i)  // of four positions each
      early.offer({.query_id = "q", .prompt_ids = {1}, .response_ids = {i, 2, 3}});
    while (early.num_known() < 8) std::this_thread::yield();
    early.end();
    EXPECT_EQ(early.num_known(), 8u);
  });
}

TEST_P(EarlyScoring, EndsInTheMiddleAndForgetsWhatNobodyHas) {
  comm::run_thread_world(1 + GetParam(), [&](comm::World& world) {
    if (world.rank() > 0) {
      LocalScorer own = make();
      return serve_early_scores(world, own);
    }
    EarlyScores early(world, 1);
    early.begin();
    for (const Rollout& rollout : rollouts_) early.offer(rollout);
    early.end();
    EXPECT_LE(early.num_known(), rollouts_.size());
    early.clear();
    EXPECT_FALSE(early.take(rollouts_[0]));
  });
}

TEST(EarlyScores, FailureOfARankIsTold) {
  EXPECT_THROW(comm::run_thread_world(2,
                                      [&](comm::World& world) {
                                        if (world.rank() > 0) fail("out of memory");
                                        EarlyScores early(world, 1);
                                        early.begin();
                                        early.end();
                                      }),
               Error);
}

}  // namespace
}  // namespace ropd::distill
