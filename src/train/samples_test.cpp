#include "train/samples.h"

#include <gtest/gtest.h>

#include "support/test_tokenizer.h"

namespace ropd::train {
namespace {

TEST(MakeSamples, GradesWhatHasAnAnswer) {
  const auto tokenizer = text::TestTokenizer{.tokens = text::TestTokenizer::with_all_bytes()}.tokenizer();
  QuerySet queries;
  queries.queries.push_back({{.id = "q1", .messages = {{"user", "two and two?"}}, .answer = "4"}, nullptr});
  const auto right = tokenizer.encode("\\boxed{4}"), wrong = tokenizer.encode("\\boxed{5}");
  const std::vector<Rollout> rollouts = {
      {.query_id = "q1", .sample = 2, .response_ids = right, .finish = Finish::eos},
      {.query_id = "q1", .response_ids = wrong},
      {.query_id = "of a bank", .response_ids = right}};
  const std::vector<Scores> scores(3);
  const auto samples = make_samples(7, rollouts, scores, queries, tokenizer, 8);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].iteration, 7u);
  EXPECT_EQ(samples[0].question, "two and two?");
  EXPECT_EQ(samples[0].correct, true);
  EXPECT_EQ(samples[0].finish, Finish::eos);
  EXPECT_EQ(samples[0].num_tokens, right.size());
  EXPECT_EQ(samples[1].correct, false);
  EXPECT_FALSE(samples[2].correct.has_value());  // no answer to compare with
  EXPECT_EQ(samples[2].question, "");
}

}  // namespace
}  // namespace ropd::train
