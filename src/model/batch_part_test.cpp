#include "model/batch_part.h"

#include <gtest/gtest.h>

#include "support/naive_model.h"

namespace ropd::model {
namespace {

// Two prompts of three tokens, two responses each, and one with a prompt of its own.
PackedBatch shared_batch() {
  static const std::vector<std::vector<Token>> prompts = {{1, 2, 3}, {4, 5, 6}, {1, 2, 3}, {7, 8}, {4, 5, 6}};
  static const std::vector<Token> response = {9, 10};
  std::vector<PromptedResponse> responses;
  for (const auto& prompt : prompts) responses.push_back({prompt, response});
  return pack_responses(responses, Prompts::shared).batch;
}

TEST(CutIntoParts, TellsEverySequenceWhatComesBeforeItAndEveryPrefixWhatItIs) {
  const PackedBatch batch = shared_batch();
  std::vector<SharedPrefix> prefixes;
  const auto parts = cut_into_parts(batch, 192, prefixes);
  ASSERT_EQ(prefixes.size(), 2u);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_FALSE(parts[0].is_prefixes());
  EXPECT_EQ(parts[0].before,
            (std::vector<SharedPrefix*>{nullptr, &prefixes[0], &prefixes[0], &prefixes[1], &prefixes[1]}));
  EXPECT_TRUE(parts[1].is_prefixes());
  EXPECT_EQ(parts[1].own, (std::vector<SharedPrefix*>{&prefixes[0], &prefixes[1]}));
  EXPECT_EQ(parts[1].first_row, parts[0].batch.num_tokens());
  EXPECT_EQ(parts[1].batch.tokens, (std::vector<Token>{1, 2, 4, 5}));
}

TEST(CutIntoParts, PartsHaveAFixedSizeAndALongerSequenceGoesAlone) {
  PackedBatch batch;
  for (const size_t length : {3, 3, 5, 9, 4, 4, 1}) batch.append(std::vector<Token>(length, 7));
  std::vector<SharedPrefix> prefixes;
  std::vector<int64_t> sequences, first_rows;
  for (const BatchPart& part : cut_into_parts(batch, 8, prefixes)) {
    sequences.push_back(part.batch.num_sequences());
    first_rows.push_back(part.first_row);
  }
  EXPECT_EQ(sequences, (std::vector<int64_t>{2, 1, 1, 2, 1}));
  EXPECT_EQ(first_rows, (std::vector<int64_t>{0, 6, 11, 20, 28}));
  EXPECT_TRUE(cut_into_parts(PackedBatch(), 8, prefixes).empty());
}

TEST(CutIntoParts, WithoutPrefixesNothingIsShared) {
  PackedBatch batch;
  batch.append(std::vector<Token>{1, 2});
  std::vector<SharedPrefix> prefixes;
  const auto parts = cut_into_parts(batch, 192, prefixes);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].before.empty() && parts[0].own.empty() && prefixes.empty());
}

TEST(SharingAttention, KeepsEachPrefixsOwnRows) {
  ModelConfig config = test::tiny_config(Architecture::qwen3);
  config.num_heads = config.num_kv_heads = 1;
  config.head_dim = 2;
  std::vector<SharedPrefix> prefixes;
  const auto parts = cut_into_parts(shared_batch(), 192, prefixes);
  const std::vector<float> q(8, 0.5f), k = {1, 2, 3, 4, 5, 6, 7, 8}, v = {8, 7, 6, 5, 4, 3, 2, 1};
  std::vector<float> out(8), again(8), log_sum_exp(4);
  for (int repeat = 0; repeat < 2; ++repeat) {
    sharing_attention(parts[1], 1, config)(out, log_sum_exp, q, k, v);
    const PrefixLayer& second = prefixes[1].layers[1];
    EXPECT_EQ(second.length, 2);
    EXPECT_EQ(std::vector<float>(second.k.data(), second.k.data() + 4), (std::vector<float>{5, 6, 7, 8}));
    EXPECT_EQ(std::vector<float>(second.v.data(), second.v.data() + 4), (std::vector<float>{4, 3, 2, 1}));
  }
  part_attention(parts[1], 1, config)(again, log_sum_exp, q, k, v);
  EXPECT_EQ(out, again);
}

}  // namespace
}  // namespace ropd::model
