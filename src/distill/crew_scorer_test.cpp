#include "distill/crew_scorer.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/log.h"
#include "base/stop.h"
#include "comm/thread_world.h"
#include "model/layer_stream.h"
#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::distill {
namespace {

class CrewScorerTest : public testing::TestWithParam<int> {
 protected:
  const model::Parameters student_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 1),
                          teacher_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 2);
  std::vector<Rollout> rollouts_;

  CrewScorerTest() {
    for (Token i = 0; i < 50; ++i) {
      rollouts_.push_back({.query_id = std::to_string(i), .prompt_ids = {1, i % 37}, .response_ids = {}});
      for (Token t = 0; t <= i % 7; ++t) rollouts_.back().response_ids.push_back((i + t) % 37);
    }
  }
  LocalScorer make() const {
    return {[this] { return student_.weights(); },
            [this] { return teacher_.weights(); },
            std::nullopt,
            {.student = {.top_k = 5}, .teacher = {.top_k = 5}}};
  }
  std::vector<Scores> of_crew(int ranks, uint64_t scoring_ranks = 0, std::vector<Scores> sampled = {}) const {
    std::vector<Scores> scores;
    comm::run_thread_world(ranks, [&](comm::World& world) {
      comm::Crew crew(world);
      LocalScorer own = make();
      uint64_t last_done = 0;
      CrewScorer scorer(
          own, crew,
          [&](const char*, uint64_t done, uint64_t total, uint64_t) {
            EXPECT_EQ(done, last_done % rollouts_.size() + 1);
            last_done = done;
            EXPECT_EQ(total, rollouts_.size());
          },
          scoring_ranks);
      if (!crew.leads()) {
        crew.serve();
        return;
      }
      scores = scorer.score(rollouts_, sampled).scores;
      crew.dismiss(0);
    });
    return scores;
  }
  void expect_same(const std::vector<Scores>& found) const {
    const auto expected = make().score(rollouts_, {}).scores;
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].query_id, expected[i].query_id);
      EXPECT_EQ(found[i].candidates, expected[i].candidates);
      EXPECT_EQ(found[i].student_logprobs, expected[i].student_logprobs);
      EXPECT_EQ(found[i].teacher_logprobs, expected[i].teacher_logprobs);
      EXPECT_EQ(found[i].teacher_sampled_logprobs, expected[i].teacher_sampled_logprobs);
      EXPECT_EQ(found[i].overlap, expected[i].overlap);
      EXPECT_EQ(found[i].sampled_logprobs, expected[i].sampled_logprobs);
      EXPECT_EQ(found[i].student_entropy, expected[i].student_entropy);
    }
  }
  // What sampling would have given.
  std::vector<Scores> students_side() const {
    model::Workspace workspace;
    return score_student(student_.weights(), rollouts_, {.top_k = 5}, workspace);
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CrewScorerTest, testing::Values(1, 2, 3, 4));

TEST_P(CrewScorerTest, GivesWhatOneScorerGives) { expect_same(of_crew(GetParam())); }

TEST_P(CrewScorerTest, WhereOnlySomeScoreTheResultIsTheSame) {
  for (const uint64_t scoring : {1, 2, 5}) expect_same(of_crew(GetParam(), scoring));
}

TEST_P(CrewScorerTest, WhatSamplingGaveIsKeptAndTheTeachersSideAdded) {
  auto marked = students_side();
  marked[1].student_entropy[0] = 77;  // not among those that are checked
  for (const uint64_t scoring : {0, 1}) {
    auto found = of_crew(GetParam(), scoring, marked);
    EXPECT_EQ(found[1].student_entropy[0], 77);
    found[1].student_entropy = students_side()[1].student_entropy;
    expect_same(found);
  }
}

TEST_P(CrewScorerTest, WrongScoresOfSamplingAreReplacedByAPass) {
  set_log_level(LogLevel::quiet);
  auto wrong = students_side();
  for (Scores& scores : wrong) scores.sampled_logprobs[0] = 1;
  const auto found = of_crew(GetParam(), 0, wrong);
  set_log_level(LogLevel::info);
  expect_same(found);
}

TEST(CrewScorer, LotsOfAStreamedTeacherAreWholePasses) {
  const test::TemporaryDirectory folder;
  test::write_tiny_model(folder / "model", test::tiny_config("Qwen3ForCausalLM"));
  const auto directory = std::make_shared<const io::ModelDirectory>(folder / "model");
  const model::Weights resident = model::map_weights(directory);
  std::vector<Rollout> rollouts;
  for (Token i = 0; i < 60; ++i)
    rollouts.push_back({.query_id = std::to_string(i), .prompt_ids = {1}, .response_ids = {i % 32, 2, 3}});
  const auto passes = [&](int ranks, uint64_t memory_bytes) {
    std::atomic<uint64_t> all = 0;
    comm::run_thread_world(ranks, [&](comm::World& world) {
      comm::Crew crew(world);
      const model::Weights streamed = model::stream_weights(directory, memory_bytes);
      LocalScorer own(
          [&] { return resident; }, [&] { return streamed; }, std::nullopt,
          {.student = {.top_k = 5, .batch_tokens = 16}, .teacher = {.top_k = 5, .batch_tokens = 16}});
      CrewScorer scorer(own, crew);
      if (crew.leads()) {
        EXPECT_EQ(scorer.score(rollouts, {}).scores.size(), rollouts.size());
        crew.dismiss(0);
      } else {
        crew.serve();
      }
      all += own.streamed().passes;
    });
    return all.load();
  };
  constexpr uint64_t kPlenty = 1 << 30;
  EXPECT_EQ(passes(1, kPlenty), 1u);
  EXPECT_LE(passes(3, kPlenty), 3u) << "a pass a rank at most";
  // A pass of 16 positions: 4 responses of 4.
  EXPECT_EQ(passes(1, 0), 15u);
  EXPECT_EQ(passes(2, 0), 15u);
}

TEST(CrewScorer, TheLastRanksScoreAndOneAloneAlways) {
  EXPECT_FALSE(CrewScorer::scores(0, 4, 2));
  EXPECT_TRUE(CrewScorer::scores(2, 4, 2));
  EXPECT_TRUE(CrewScorer::scores(0, 4, 0));
  EXPECT_TRUE(CrewScorer::scores(0, 1, 2));
}

TEST_P(CrewScorerTest, StopRequestLeavesNoScoreOut) {
  request_stop();
  const auto scores = of_crew(GetParam());
  clear_stop_request();
  expect_same(scores);
}

}  // namespace
}  // namespace ropd::distill
