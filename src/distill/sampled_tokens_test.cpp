#include "distill/sampled_tokens.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/test_tokenizer.h"

namespace ropd::distill {
namespace {

constexpr Token kEnd = 256;

text::Tokenizer byte_tokenizer() {
  return text::TestTokenizer{.tokens = text::TestTokenizer::with_all_bytes(),
                             .added = {{.content = "<end>", .is_special = true}}}
      .tokenizer();
}

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

TEST(SampledTokens, CarryWhatBothModelsThought) {
  const auto tokenizer = byte_tokenizer();
  const Rollout rollout{.query_id = "q", .response_ids = {'b', '1', kEnd}};
  const Scores scores{.top_k = 2,
                      .candidates = {'b', 'c', '1', 'd', kEnd, 'e'},
                      .student_logprobs = {-0.5f, -1, -0.25f, -2, -0.125f, -3},
                      .teacher_logprobs = {-1, kImpossible, -2, -3, -4, -5},
                      .sampled_logprobs = {-0.5f, -0.25f, -0.125f},
                      .teacher_sampled_logprobs = {-1, -2, kImpossible}};
  const auto tokens = sampled_tokens(rollout, scores, tokenizer, 100, 2);
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[0].chosen.text, "b");
  EXPECT_EQ(tokens[1].chosen.text, "1");
  EXPECT_EQ(tokens[2].chosen.text, "<end>");
  EXPECT_EQ(tokens[1].chosen.student_logprob, -0.25);
  EXPECT_EQ(tokens[1].chosen.teacher_logprob, -2.0);
  EXPECT_FALSE(tokens[2].chosen.teacher_logprob);
  ASSERT_EQ(tokens[0].candidates.size(), 2u);
  EXPECT_EQ(tokens[0].candidates[1].text, "c");
  EXPECT_EQ(tokens[0].candidates[1].student_logprob, -1.0);
  EXPECT_FALSE(tokens[0].candidates[1].teacher_logprob);
  EXPECT_TRUE(tokens[2].candidates.empty());  // beyond the limit
  EXPECT_EQ(sampled_tokens(rollout, scores, tokenizer, 2, 2).size(), 2u);
  EXPECT_TRUE(sampled_tokens({}, {}, tokenizer, 2, 2).empty());
}

TEST(SampledTokens, TogetherAreTheResponse) {
  const auto tokenizer = byte_tokenizer();
  const std::string text = "größer";
  const Rollout rollout{.response_ids = tokenizer.encode(text)};
  std::string joined;
  for (const SampleToken& token : sampled_tokens(rollout, {}, tokenizer, 100, 100))
    joined += token.chosen.text;
  EXPECT_EQ(joined, text);
  EXPECT_EQ(sampled_tokens(rollout, {}, tokenizer, 3, 3).back().chosen.text, "\uFFFD");  // cut inside ö
}

}  // namespace
}  // namespace ropd::distill
