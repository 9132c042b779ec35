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

}  // namespace
}  // namespace ropd::model
