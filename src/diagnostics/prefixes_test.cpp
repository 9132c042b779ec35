#include "diagnostics/prefixes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/layer_stream.h"
#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::diagnostics {
namespace {

using test::NaiveModel;
using test::random_parameters;
using test::tiny_config;

std::vector<Rollout> some_rollouts() {
  std::vector<Rollout> rollouts(2);
  rollouts[0] = {.query_id = "a", .prompt_ids = {1, 2}, .response_ids = {4, 5, 36, 7, 9, 11}};
  rollouts[1] = {.query_id = "b", .prompt_ids = {9}, .response_ids = {8, 3}};
  return rollouts;
}

TEST(ChoosePositions, AreDistinctSortedAndDependOnTheRolloutAlone) {
  const auto both = choose_positions(some_rollouts(), 4, 5);
  EXPECT_EQ(both.positions[0].size(), 4u);
  EXPECT_EQ(both.positions[1], (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(std::is_sorted(both.positions[0].begin(), both.positions[0].end()));
  EXPECT_EQ(choose_positions({some_rollouts()[0]}, 4, 5).positions[0], both.positions[0]);
}

TEST(PositionKl, EqualsTheOracle) {
  const auto student = random_parameters(tiny_config(Architecture::qwen3), 1),
             teacher = random_parameters(tiny_config(Architecture::qwen3), 2);
  const auto set = choose_positions(some_rollouts(), 3, 7);
  const auto kl = position_kl(student.weights(), teacher.weights(), states_at(teacher.weights(), set), set);
  const NaiveModel s(student), t(teacher);
  for (size_t i = 0; i < set.rollouts.size(); ++i) {
    auto tokens = set.rollouts[i].prompt_ids;
    tokens.insert(tokens.end(), set.rollouts[i].response_ids.begin(), set.rollouts[i].response_ids.end());
    const auto student_logits = s.logits(tokens), teacher_logits = t.logits(tokens);
    for (size_t p = 0; p < set.positions[i].size(); ++p) {
      const size_t row = set.rollouts[i].prompt_ids.size() - 1 + set.positions[i][p];
      const auto a = NaiveModel::log_softmax(student_logits[row]),
                 b = NaiveModel::log_softmax(teacher_logits[row]);
      double want = 0;
      for (size_t v = 0; v < a.size(); ++v) want += std::exp(a[v]) * (a[v] - b[v]);
      EXPECT_NEAR(kl[i][p], want, 1e-5);
    }
  }
  const auto self = position_kl(student.weights(), student.weights(), states_at(student.weights(), set), set);
  EXPECT_EQ(mean_over_responses(self), 0.0);
}

TEST(PositionKl, OfAStreamedTeacherIsTheSameAndNeedsOnePass) {
  const auto student = random_parameters(tiny_config(Architecture::qwen3), 1);
  const test::TemporaryDirectory folder;
  test::write_tiny_model(folder / "teacher",
                         test::tiny_config("Qwen3MoeForCausalLM", {{"vocab_size", "37"}}));
  const auto directory = std::make_shared<const io::ModelDirectory>(folder / "teacher");
  const auto set = choose_positions(some_rollouts(), 3, 7);
  const model::Weights resident = model::map_weights(directory),
                       streamed = model::stream_weights(directory, 0);
  const auto kl = [&](const model::Weights& teacher) {
    return position_kl(student.weights(), teacher, states_at(teacher, set), set);
  };
  EXPECT_EQ(kl(streamed), kl(resident));
  EXPECT_EQ(streamed.stream->counts().passes, 1u);
}

TEST(PrefixLogLikelihood, SumsTheTokensBefore) {
  const auto model = random_parameters(tiny_config(Architecture::qwen3), 3);
  PrefixSet set{some_rollouts(), {{0, 2, 5}, {1}}};
  const auto values = prefix_log_likelihood(model.weights(), set);
  EXPECT_EQ(values[0][0], 0.0);
  const NaiveModel oracle(model);
  const auto logits = oracle.logits({1, 2, 4, 5});
  const double want = NaiveModel::log_softmax(logits[1])[4] + NaiveModel::log_softmax(logits[2])[5];
  EXPECT_NEAR(values[0][1], want, 1e-5);
  EXPECT_LT(values[0][2], values[0][1]);
}

TEST(LikelihoodChange, WeighsResponsesEquallyAndLeavesOutEmptyPrefixes) {
  const PrefixSet set{some_rollouts(), {{0, 2, 5}, {1}}};
  const auto change = likelihood_change(set, {{0, -2, -3}, {-1}}, {{0, -4, -2}, {-5}});
  EXPECT_NEAR(change.less_likely, (0.5 + 1.0) / 2, 1e-12);
  ASSERT_EQ(change.cumulative.size(), 3u);
  EXPECT_EQ(change.cumulative[0].first, -4);
  EXPECT_NEAR(change.cumulative[0].second, 0.5, 1e-12);
  EXPECT_NEAR(change.cumulative[2].second, 1.0, 1e-12);
}

TEST(MeanOverResponses, AveragesInsideAResponseFirst) {
  EXPECT_EQ(mean_over_responses({{1, 3}, {10}, {}}), 6.0);
}

TEST(Concentration, SplitsByTheReference) {
  const auto c = concentration({{5, 1}, {4, 0}}, {{1, 1}, {2, 0}}, {{3, 1}, {3, 0.5}}, 0.5);
  EXPECT_EQ(c.top_first, 1.5);
  EXPECT_EQ(c.top_second, 3.0);
  EXPECT_EQ(c.rest_second, 0.75);
  EXPECT_NEAR(c.top_share, 3.0 / 3.5, 1e-12);
  EXPECT_EQ(c.positions_first_lower, 0.75);
  EXPECT_EQ(c.responses_first_lower, 1.0);
}

}  // namespace
}  // namespace ropd::diagnostics
