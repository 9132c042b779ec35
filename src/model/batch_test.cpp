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

TEST(CutEvenly, CutsAtTheSequenceBoundaryNearestToAnEvenShare) {
  EXPECT_EQ(cut_evenly(of_lengths({5, 5, 5, 5}), 2), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(cut_evenly(of_lengths({9, 1, 5, 5}), 2), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(cut_evenly(of_lengths({6, 8, 6}), 2), (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(cut_evenly(of_lengths({1, 1, 1, 1, 1, 1}), 3), (std::vector<int64_t>{0, 2, 4, 6}));
}

TEST(CutEvenly, EndsWithSmallParts) {
  EXPECT_EQ(cut_evenly(of_lengths(std::vector<size_t>(16, 3)), 8),
            (std::vector<int64_t>{0, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
}

TEST(CutEvenly, NeverMakesAnEmptyPart) {
  EXPECT_EQ(cut_evenly(of_lengths({100, 1, 1}), 4), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(cut_evenly(of_lengths({1, 1, 100}), 4), (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(cut_evenly(of_lengths({7}), 8), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(cut_evenly(PackedBatch(), 3), (std::vector<int64_t>{0}));
}

}  // namespace
}  // namespace ropd::model
