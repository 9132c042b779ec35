#include "distill/local_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/log.h"
#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::distill {
namespace {

class LocalScorerTest : public testing::Test {
 protected:
  const model::Parameters student_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 1),
                          teacher_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 2);
  const std::vector<Rollout> rollouts_ = {
      {.query_id = "a", .prompt_ids = {1, 2, 3}, .response_ids = {4, 5, 36, 7}},
      {.query_id = "b", .prompt_ids = {9}, .response_ids = {8}},
      {.query_id = "a", .sample = 1, .prompt_ids = {1, 2, 3}, .response_ids = {6, 2}}};

  LocalScorer scorer(LocalScorerConfig config = {.student = {.top_k = 5}, .teacher = {.top_k = 5}}) const {
    return {[this] { return student_.weights(); }, [this] { return teacher_.weights(); }, std::nullopt,
            std::move(config)};
  }
  std::vector<Scores> expected() const {
    model::Workspace workspace;
    auto scores = score_student(student_.weights(), rollouts_, {.top_k = 5}, workspace);
    score_teacher(scores, teacher_.weights(), rollouts_, {.top_k = 5}, workspace);
    return scores;
  }
};

TEST_F(LocalScorerTest, GivesBothSidesOfEveryRollout) {
  const auto scores = expected();
  for (const bool keeps_memory : {true, false}) {
    auto used = scorer({.student = {.top_k = 5}, .teacher = {.top_k = 5}, .keeps_memory = keeps_memory});
    const Scoring scoring = used.score(rollouts_, {});
    ASSERT_EQ(scoring.scores.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(scoring.scores[i].student_logprobs, scores[i].student_logprobs);
      EXPECT_EQ(scoring.scores[i].teacher_logprobs, scores[i].teacher_logprobs);
    }
  }
}

TEST_F(LocalScorerTest, TakesWhatSamplingGaveAndSendsNoPassForIt) {
  std::map<std::string, int> passes;
  auto used = scorer({.student = {.top_k = 5},
                      .teacher = {.top_k = 5},
                      .progress = [&](const char* stage, uint64_t, uint64_t, uint64_t) { ++passes[stage]; }});
  const Scoring scoring = used.score(rollouts_, expected());
  EXPECT_EQ(scoring.scores[2].student_logprobs, expected()[2].student_logprobs);
  EXPECT_FALSE(passes.contains("student scores"));
  EXPECT_TRUE(passes.contains("teacher scores"));
}

TEST_F(LocalScorerTest, AStageIsToldWhenItBegins) {
  std::vector<std::string> told;
  auto used = scorer({.student = {.top_k = 5},
                      .teacher = {.top_k = 5},
                      .progress = [&](const char* stage, uint64_t done, uint64_t total, uint64_t) {
                        told.push_back(stage + (" " + std::to_string(done)) + "/" + std::to_string(total));
                      }});
  (void)used.score(rollouts_, {});
  EXPECT_EQ(told.front(), "student scores 0/3");
  EXPECT_EQ(std::ranges::count(told, "teacher scores 0/3"), 1);
  EXPECT_EQ(told.back(), "teacher scores 3/3");
}

TEST_F(LocalScorerTest, WrongScoresOfSamplingAreReplacedByAPass) {
  set_log_level(LogLevel::quiet);
  auto wrong = expected();
  for (Scores& scores : wrong) scores.student_logprobs[0] = std::nextafter(scores.student_logprobs[0], 1.0f);
  const Scoring scoring = scorer().score(rollouts_, wrong);
  set_log_level(LogLevel::info);
  EXPECT_EQ(scoring.scores[1].student_logprobs, expected()[1].student_logprobs);
}

TEST_F(LocalScorerTest, TheTeachersRowsGiveItsLogProbabilities) {
  std::vector<TrainingItem> items;
  for (const Rollout& rollout : rollouts_) items.push_back({.rollout = &rollout});
  const TeacherRows rows = scorer().teacher_rows(items);
  const auto width = static_cast<size_t>(rows.head.columns);
  ASSERT_EQ(rows.states.size(), 7 * width);
  const test::NaiveModel oracle(teacher_);
  const float* head = static_cast<const float*>(rows.head.data);
  size_t row = 0;
  for (const Rollout& rollout : rollouts_) {
    auto tokens = rollout.prompt_ids;
    tokens.insert(tokens.end(), rollout.response_ids.begin(), rollout.response_ids.end());
    const auto logits = oracle.logits(tokens);
    for (size_t t = 0; t < rollout.response_ids.size(); ++t, ++row)
      for (size_t v : {size_t{0}, size_t{17}, size_t{36}}) {
        double logit = 0;
        for (size_t d = 0; d < width; ++d)
          logit += static_cast<double>(head[v * width + d]) * rows.states[row * width + d];
        EXPECT_NEAR(logit, logits[rollout.prompt_ids.size() - 1 + t][v], 1e-4);
      }
  }
}

TEST(StreamedTeacher, GivesTheBitsOfAResidentOneAndCountsWhatItReads) {
  const test::TemporaryDirectory folder;
  test::write_tiny_model(folder / "model", test::tiny_config("Qwen3MoeForCausalLM"));
  const auto directory = std::make_shared<const io::ModelDirectory>(folder / "model");
  const model::Weights resident = model::map_weights(directory),
                       streamed = model::stream_weights(directory, 0);
  const std::vector<Rollout> rollouts = {{.query_id = "a", .prompt_ids = {1, 2, 3}, .response_ids = {4, 5}},
                                         {.query_id = "b", .prompt_ids = {9}, .response_ids = {8, 1, 30}}};
  std::vector<TrainingItem> items;
  for (const Rollout& rollout : rollouts) items.push_back({.rollout = &rollout});
  std::vector<LocalScorer> scorers;
  for (const model::Weights& teacher : {resident, streamed})
    scorers.emplace_back([&] { return resident; }, [teacher] { return teacher; }, std::nullopt,
                         LocalScorerConfig{});
  const auto whole = scorers[0].score(rollouts, {}), by_layers = scorers[1].score(rollouts, {});
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(by_layers.scores[i].teacher_logprobs, whole.scores[i].teacher_logprobs);
  const auto parts = model::stream_parts(directory->config(), 4);
  const uint64_t bytes = std::accumulate(parts.begin(), parts.end(), uint64_t{0});
  EXPECT_EQ(scorers[0].streamed().passes, 0u);
  EXPECT_EQ(scorers[1].streamed().passes, 1u);
  EXPECT_EQ(scorers[1].streamed().bytes, bytes);
  const TeacherRows want = scorers[0].teacher_rows(items), rows = scorers[1].teacher_rows(items);
  EXPECT_TRUE(std::ranges::equal(rows.states.span(), want.states.span()));
  EXPECT_EQ(rows.head.columns, want.head.columns);
  EXPECT_EQ(scorers[1].streamed().passes, 2u);
  EXPECT_EQ(scorers[1].streamed().bytes, 2 * bytes);
}

}  // namespace
}  // namespace ropd::distill
