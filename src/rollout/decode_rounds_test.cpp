#include "rollout/decode_rounds.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "support/set_threads.h"

namespace ropd::rollout {
namespace {

constexpr model::Execution kLarge{.sharing = model::Sharing::products},
    kSmall{.sharing = model::Sharing::sequences};

TEST(DecodeRounds, ThreadsOfALargeModelPartWhereCoresAreLost) {
  const test::SetThreads set(3);
  double lost = 0.5;
  DecodeRounds rounds(kLarge, [&] { return lost; });
  EXPECT_FALSE(rounds.next(24).is_apart) << "nothing was seen yet";
  const auto apart = rounds.next(24);
  EXPECT_TRUE(apart.is_apart);
  EXPECT_EQ(apart.num_workers, 3u);
  EXPECT_EQ(rounds.next(12).num_workers, 2u) << "the weights are worth reading for about eight";
  EXPECT_FALSE(rounds.next(11).is_apart) << "two thirds of the cores would have no work";
  lost = 0.05;
  EXPECT_FALSE(rounds.next(24).is_apart) << "everybody is lent a core now and then";
  lost = 0.5;
  EXPECT_TRUE(rounds.next(24).is_apart);
}

TEST(DecodeRounds, FewSequencesDoNotLeaveManyCoresWithoutWork) {
  const test::SetThreads set(8);
  DecodeRounds rounds(kLarge, [] { return 0.5; });
  (void)rounds.next(8);
  EXPECT_FALSE(rounds.next(8).is_apart) << "not one thread of eight";
  EXPECT_FALSE(rounds.next(40).is_apart);
  EXPECT_EQ(rounds.next(48).num_workers, 6u);
  EXPECT_EQ(rounds.next(96).num_workers, 8u);
}

TEST(DecodeRounds, OnTwoCoresOneThreadDecodesFewSequencesAlone) {
  const test::SetThreads set(2);
  DecodeRounds rounds(kLarge, [] { return 0.5; });
  (void)rounds.next(8);
  EXPECT_FALSE(rounds.next(3).is_apart);
  const auto alone = rounds.next(8);
  EXPECT_TRUE(alone.is_apart);
  EXPECT_EQ(alone.num_workers, 1u);
  size_t inside = 0;
  alone.run([&](size_t) { inside = num_workers(); });
  EXPECT_EQ(inside, 1u) << "what a step calls stays on its thread";
  rounds.next(3).run([&](size_t) { inside = num_workers(); });
  EXPECT_EQ(inside, 2u);
}

TEST(DecodeRounds, OfALargeModelEndToLookAgain) {
  const test::SetThreads set(2);
  bool was_asked = false;
  DecodeRounds rounds(kLarge, [&] {
    was_asked = true;
    return 1;
  });
  const auto together = rounds.next(64);
  EXPECT_FALSE(was_asked) << "before the first round there is nothing to ask for";
  const auto apart = rounds.next(64);
  EXPECT_TRUE(was_asked);
  EXPECT_LT(together.num_steps, apart.num_steps / 2) << "apart, the round waits for the slowest";
  EXPECT_LT(apart.num_steps, 1000);
}

TEST(DecodeRounds, ThreadsOfASmallModelArePartedForGood) {
  const test::SetThreads set(3);
  DecodeRounds rounds(kSmall, [&]() -> double {
    ADD_FAILURE() << "nobody has to look";
    return 0;
  });
  for (int i = 0; i < 3; ++i) {
    const auto round = rounds.next(480);
    EXPECT_EQ(round.num_workers, 3u);
    EXPECT_TRUE(round.is_apart);
    EXPECT_GT(round.num_steps, int64_t{1} << 60);
  }
}

}  // namespace
}  // namespace ropd::rollout
