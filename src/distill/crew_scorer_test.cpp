#include "distill/crew_scorer.h"

#include <gtest/gtest.h>

#include "base/stop.h"
#include "comm/thread_world.h"
#include "support/naive_model.h"

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
  std::vector<Scores> of_crew(int ranks, uint64_t scoring_ranks = 0) const {
    std::vector<Scores> scores;
    comm::run_thread_world(ranks, [&](comm::World& world) {
      comm::Crew crew(world);
      LocalScorer own = make();
      uint64_t last_done = 0;
      CrewScorer scorer(
          own, crew,
          [&](const char*, uint64_t done, uint64_t total, uint64_t) {
            EXPECT_EQ(done, ++last_done);
            EXPECT_EQ(total, rollouts_.size());
          },
          scoring_ranks);
      if (!crew.leads()) {
        crew.serve();
        return;
      }
      scores = scorer.score(rollouts_, {}).scores;
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
      EXPECT_EQ(found[i].student_entropy, expected[i].student_entropy);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CrewScorerTest, testing::Values(1, 2, 3, 4));

TEST_P(CrewScorerTest, GivesWhatOneScorerGives) { expect_same(of_crew(GetParam())); }

TEST_P(CrewScorerTest, WhereOnlySomeScoreTheResultIsTheSame) {
  for (const uint64_t scoring : {1, 2, 5}) expect_same(of_crew(GetParam(), scoring));
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
