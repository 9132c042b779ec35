#include "curriculum/bank_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::curriculum {
namespace {

using testing::ElementsAre;

TEST(BankCursor, WalksTheBatchesInOrderAndStartsOver) {
  BankCursor cursor("bank", 2400);
  for (size_t iteration = 0; iteration < 12; ++iteration) {
    const auto rows = cursor.take(480);
    ASSERT_EQ(rows.size(), 480u);
    EXPECT_EQ(rows.front(), iteration % 5 * 480);
    EXPECT_EQ(rows.back(), iteration % 5 * 480 + 479);
  }
  EXPECT_EQ(cursor.times_started_over(), 2u);
}

TEST(BankCursor, ABatchThatReachesTheEndGoesOnAtTheBeginning) {
  BankCursor cursor("bank", 5);
  EXPECT_THAT(cursor.take(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(cursor.take(3), ElementsAre(3, 4, 0));
  EXPECT_EQ(cursor.position(), 1u);
}

TEST(BankCursor, GoesOnFromASavedPosition) {
  BankCursor cursor("bank", 5, 4);
  EXPECT_THAT(cursor.take(2), ElementsAre(4, 0));
}

TEST(BankCursor, RefusesAnEmptyBankABatchTooLargeAndAForeignPosition) {
  EXPECT_THROW(BankCursor("bank", 0), Error);
  EXPECT_THROW(BankCursor("bank", 5, 5), Error);
  BankCursor cursor("bank", 5);
  EXPECT_THROW((void)cursor.take(6), Error);
}

}  // namespace
}  // namespace ropd::curriculum
