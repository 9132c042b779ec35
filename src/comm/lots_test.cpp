#include "comm/lots.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/stop.h"
#include "comm/thread_world.h"

namespace ropd::comm {
namespace {

TEST(Lots, GetSmallerTowardsTheEnd) {
  EXPECT_EQ(lot_size(100, 50, 2), 25u);
  EXPECT_EQ(lot_size(100, 8, 2), 8u);
  EXPECT_EQ(lot_size(3, 8, 2), 1u);
  EXPECT_EQ(lot_size(0, 8, 2), 0u);
}

void take_all(World& world) {
  Taker taker(world);
  while (const auto lot = taker.take(4, true))
    for (const size_t piece : *lot) taker.send_result(piece, ByteWriter());
  taker.finish();
}

TEST(Lots, StopRequestEndsTheDealing) {
  request_stop();
  run_thread_world(2, [](World& world) {
    if (world.rank() > 0) return take_all(world);
    size_t results = 0;
    Dealer dealer(world, 100, {.on_result = [&](size_t, ByteReader&) { ++results; }});
    EXPECT_TRUE(dealer.take(10).empty());
    dealer.finish();
    EXPECT_EQ(results, 0u);
  });
  clear_stop_request();
}

TEST(Lots, FailureOfAResultIsToldAtTheEndAndNobodyIsLeftWaiting) {
  run_thread_world(3, [](World& world) {
    if (world.rank() > 0) return take_all(world);
    Dealer dealer(world, 100, {.on_result = [&](size_t, ByteReader&) { fail("full disk"); }});
    EXPECT_THROW(dealer.finish(), Error);
  });
}

TEST(Lots, LeaderThatBreaksOffLetsTheOthersEnd) {
  run_thread_world(2, [](World& world) {
    if (world.rank() > 0) return take_all(world);
    Dealer dealer(world, 1'000'000, {.on_result = [&](size_t, ByteReader&) {}});
  });
}

TEST(Lots, RankThatStopsWithAQuestionOpenEndsCleanly) {
  run_thread_world(2, [](World& world) {
    if (world.rank() > 0) {
      Taker taker(world);
      (void)taker.take(4, /*may_wait=*/false);
      taker.finish();
      EXPECT_FALSE(world.try_receive(0, Tag::lot));
      return;
    }
    Dealer dealer(world, 100, {.on_result = [&](size_t, ByteReader&) {}});
    dealer.finish();
  });
}

}  // namespace
}  // namespace ropd::comm
