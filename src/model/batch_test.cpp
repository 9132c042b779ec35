#include "model/batch.h"

#include <gtest/gtest.h>

namespace ropd::model {
namespace {

TEST(PackedBatch, PositionsStartOverInEverySequence) {
  PackedBatch batch;
  batch.append(std::vector<Token>{5, 6}, std::vector<Token>{7});
  batch.append(std::vector<Token>{8});
  EXPECT_EQ(batch.tokens, (std::vector<Token>{5, 6, 7, 8}));
  EXPECT_EQ(batch.positions, (std::vector<int32_t>{0, 1, 2, 0}));
  EXPECT_EQ(batch.sequence_begins, (std::vector<int64_t>{0, 3, 4}));
  EXPECT_EQ(batch.num_sequences(), 2);
}

PackedBatch of_lengths(const std::vector<size_t>& lengths) {
  PackedBatch batch;
  Token next = 0;
  for (const size_t length : lengths) {
    std::vector<Token> tokens;
    for (size_t i = 0; i < length; ++i) tokens.push_back(next++);
    batch.append(tokens);
  }
  return batch;
}

TEST(PackedBatch, PartsAreTheSequencesOnTheirOwn) {
  const PackedBatch batch = of_lengths({3, 1, 2, 4});
  const PackedBatch part = batch.part(1, 3);
  EXPECT_EQ(part.tokens, (std::vector<Token>{3, 4, 5}));
  EXPECT_EQ(part.positions, (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(part.sequence_begins, (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(batch.part(0, 4).tokens, batch.tokens);
}

TEST(PackInOrder, FillsUpToTheLimitAndGivesALongOneItsOwnPass) {
  const std::vector<int64_t> lengths = {3, 3, 9, 1, 2, 2};
  const auto ranges = pack_in_order(lengths.size(), 6, [&](size_t i) { return lengths[i]; });
  EXPECT_EQ(ranges, (std::vector<std::pair<size_t, size_t>>{{0, 2}, {2, 3}, {3, 6}}));
}

struct Texts {
  std::vector<std::vector<Token>> prompts, responses;
  std::vector<PromptedResponse> all() const {
    std::vector<PromptedResponse> result;
    for (size_t i = 0; i < prompts.size(); ++i) result.push_back({prompts[i], responses[i]});
    return result;
  }
};

TEST(PackResponses, LeaveOutTheLastTokenWhichPredictsNothing) {
  const Texts texts{{{1, 2}, {3}}, {{5, 6, 7}, {8}}};
  const auto [batch, first_rows] = pack_responses(texts.all(), Prompts::each_its_own);
  EXPECT_EQ(batch.tokens, (std::vector<Token>{1, 2, 5, 6, 3}));
  EXPECT_EQ(batch.sequence_begins, (std::vector<int64_t>{0, 4, 5}));
  EXPECT_EQ(first_rows, (std::vector<int64_t>{1, 4}));
}

TEST(PackResponses, ToTheSamePromptShareAllOfItButTheLastToken) {
  const Texts texts{{{1, 2, 3}, {9, 4}, {1, 2, 3}, {7}, {7}}, {{5, 6}, {8}, {6}, {1, 1}, {2, 2}}};
  EXPECT_EQ(group_by_prompt(texts.all()), (std::vector<std::vector<size_t>>{{0, 2}, {1}, {3, 4}}));
  const auto [batch, first_rows] = pack_responses(texts.all(), Prompts::shared);
  // Alone: 9 4, and twice 7 1, of which nothing is left to share. Then 3 5 and 3, and 1 2 behind them.
  EXPECT_EQ(batch.tokens, (std::vector<Token>{9, 4, 7, 1, 7, 2, 3, 5, 3, 1, 2}));
  EXPECT_EQ(batch.positions, (std::vector<int32_t>{0, 1, 0, 1, 0, 1, 2, 3, 2, 0, 1}));
  EXPECT_EQ(batch.sequence_begins, (std::vector<int64_t>{0, 2, 4, 6, 8, 9, 11}));
  EXPECT_EQ(batch.prefix_of, (std::vector<int64_t>{-1, -1, -1, 5, 5, -1}));
  EXPECT_EQ(first_rows, (std::vector<int64_t>{6, 1, 8, 2, 4}));
  EXPECT_EQ(batch.is_prefix(), (std::vector<bool>{false, false, false, false, false, true}));
}

TEST(PackResponses, ASharedPromptTakesAnEmptyResponse) {
  const Texts texts{{{1, 2}, {1, 2}}, {{}, {4}}};
  const auto [batch, first_rows] = pack_responses(texts.all(), Prompts::shared);
  EXPECT_EQ(batch.tokens, (std::vector<Token>{2, 2, 1}));
  EXPECT_EQ(first_rows, (std::vector<int64_t>{0, 1}));
}

TEST(CutEvenly, KeepsPrefixesApartFromOtherSequences) {
  Texts texts;
  for (Token q = 0; q < 3; ++q)
    for (Token i = 0; i < 2; ++i) {
      texts.prompts.push_back(std::vector<Token>(100, q));
      texts.responses.push_back({i, i});
    }
  const PackedBatch batch = pack_responses(texts.all(), Prompts::shared).batch;
  // Two prompts are enough to be computed together; the third comes with its own.
  EXPECT_EQ(batch.prefix_of, (std::vector<int64_t>{4, 4, 5, 5, -1, -1, 8, 8, -1}));
}

}  // namespace
}  // namespace ropd::model
