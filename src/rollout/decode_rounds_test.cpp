#include "rollout/decode_rounds.h"

#include <gtest/gtest.h>

#include "support/set_threads.h"

namespace ropd::rollout {
namespace {

constexpr model::Execution kLarge{.sharing = model::Sharing::products},
    kSmall{.sharing = model::Sharing::sequences};

TEST(DecodeRounds, ThreadsOfALargeModelPartWhereCoresAreLost) {
  const test::SetThreads set(3);
  double lost = 0.5;
  DecodeRounds rounds(kLarge, [&] { return lost; });
  EXPECT_EQ(rounds.next(12).num_workers, 1u) << "nothing was seen yet";
  EXPECT_EQ(rounds.next(12).num_workers, 3u);
  EXPECT_EQ(rounds.next(11).num_workers, 1u) << "a third of the cores would have no work";
  lost = 0.05;
  EXPECT_EQ(rounds.next(12).num_workers, 1u) << "everybody is lent a core now and then";
  lost = 0.5;
  EXPECT_EQ(rounds.next(12).num_workers, 3u);
}

TEST(DecodeRounds, FewSequencesDoNotLeaveManyCoresWithoutWork) {
  const test::SetThreads set(8);
  DecodeRounds rounds(kLarge, [] { return 0.5; });
  (void)rounds.next(8);
  EXPECT_EQ(rounds.next(8).num_workers, 1u) << "not two threads of eight";
  EXPECT_EQ(rounds.next(24).num_workers, 6u);
  EXPECT_EQ(rounds.next(96).num_workers, 8u);
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
  for (int round = 0; round < 3; ++round) {
    const auto [num_workers, num_steps] = rounds.next(480);
    EXPECT_EQ(num_workers, 3u);
    EXPECT_GT(num_steps, int64_t{1} << 60);
  }
}

}  // namespace
}  // namespace ropd::rollout
