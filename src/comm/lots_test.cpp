#include "comm/lots.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/stop.h"
#include "comm/thread_world.h"

namespace ropd::comm {
namespace {

TEST(Lots, GetSmallerTowardsTheEnd) {
  EXPECT_EQ(lot_share(100, {.most = 50}, 2), 25u);
  EXPECT_EQ(lot_share(100, {.most = 8}, 2), 8u);
  EXPECT_EQ(lot_share(3, {.most = 8}, 2), 1u);
  EXPECT_EQ(lot_share(100, {.least = 40, .most = 50}, 2), 40u);
}

TEST(Lots, AreCutByCostAndNoPieceIsTooMuch) {
  run_thread_world(1, [](World& world) {
    Dealer dealer(world, {5, 5, 50, 1, 1, 1}, {});
    const auto sizes = [&](const LotRange& wanted) { return dealer.take(wanted).size(); };
    EXPECT_EQ(sizes({.most = 10}), 2u);
    EXPECT_EQ(sizes({.most = 10}), 1u) << "alone, though it costs more";
    EXPECT_EQ(sizes({.least = 2, .most = 10}), 2u);
    EXPECT_EQ(sizes({.least = 2, .most = 10}), 1u);
    EXPECT_EQ(sizes({.least = 2, .most = 10}), 0u);
    dealer.finish();
  });
}

TEST(Lots, CarryWhatARankMustKnow) {
  run_thread_world(2, [](World& world) {
    if (world.rank() > 0) {
      Taker taker(world);
      while (const auto lot = taker.take({.most = 3}, true)) {
        ByteReader about(lot->about);
        for (size_t piece = lot->begin; piece < lot->end; ++piece)
          EXPECT_EQ(about.get<uint64_t>(), 7 * piece);
        EXPECT_TRUE(about.is_at_end());
      }
      return taker.finish();
    }
    Dealer dealer(world, 20, {.describe = [](ByteWriter& about, const Lot& lot) {
                    for (size_t piece = lot.begin; piece < lot.end; ++piece) about.put(uint64_t{7 * piece});
                  }});
    dealer.finish();
  });
}

void take_all(World& world) {
  Taker taker(world);
  while (const auto lot = taker.take({.most = 4}, true))
    for (size_t piece = lot->begin; piece < lot->end; ++piece) taker.send_result(piece, ByteWriter());
  taker.finish();
}

TEST(Lots, StopRequestEndsTheDealing) {
  request_stop();
  run_thread_world(2, [](World& world) {
    if (world.rank() > 0) return take_all(world);
    size_t results = 0;
    Dealer dealer(world, 100, {.on_result = [&](size_t, ByteReader&) { ++results; }});
    EXPECT_TRUE(dealer.take({.most = 10}).empty());
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
      (void)taker.take({.most = 4}, /*may_wait=*/false);
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
