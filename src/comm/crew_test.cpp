#include "comm/crew.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "comm/thread_world.h"

namespace ropd::comm {
namespace {

TEST(Crew, EveryRankGetsItsOwnMessage) {
  run_thread_world(3, [](World& world) {
    Crew crew(world);
    int got = -1;
    const size_t duty = crew.enlist([&](ByteReader& call) { got = call.get<int>(); });
    if (!crew.leads()) {
      EXPECT_EQ(crew.serve(), 0);
      EXPECT_EQ(got, 10 * world.rank());
      return;
    }
    {
      const auto call =
          crew.call_each(duty, "numbers", [](int rank) { return ByteWriter().put(10 * rank).take(); });
      EXPECT_FALSE(crew.is_idle());
    }
    EXPECT_TRUE(crew.is_idle());
    crew.dismiss(0);
  });
}

TEST(Crew, CallBrokenOffByAnExceptionLeavesItAtWork) {
  run_thread_world(2, [](World& world) {
    Crew crew(world);
    const size_t duty = crew.enlist([](ByteReader&) {});
    if (!crew.leads()) {
      crew.serve();
      return;
    }
    try {
      const auto call = crew.call(duty, "save");
      fail("full disk");
    } catch (const Error&) {
    }
    EXPECT_FALSE(crew.is_idle());
    { const auto call = crew.call(duty, "again"); }  // this duty had nothing left to say
    EXPECT_TRUE(crew.is_idle());
    crew.dismiss(0);
  });
}

TEST(Crew, OthersBeginOnceTheLeaderHasSucceeded) {
  std::atomic<int> begun = 0;
  run_thread_world(3, [&](World& world) {
    Crew crew(world);
    const auto dismissed = crew.leader_first([&] { EXPECT_EQ(begun++ == 0, crew.leads()); });
    EXPECT_FALSE(dismissed);
    EXPECT_EQ(crew.is_idle(), false) << "what follows is not service yet";
  });
  EXPECT_EQ(begun, 3);
}

TEST(Crew, NobodyBeginsWhatTheLeaderCannot) {
  std::atomic<int> begun = 0;
  run_thread_world(3, [&](World& world) {
    Crew crew(world);
    const auto work = [&] {
      ++begun;
      fail("no such file");
    };
    if (!crew.leads()) {
      EXPECT_EQ(crew.leader_first(work), 7);
      return;
    }
    EXPECT_THROW((void)crew.leader_first(work), Error);
    ASSERT_TRUE(crew.is_idle());
    crew.dismiss(7);
  });
  EXPECT_EQ(begun, 1);
}

TEST(Crew, AloneItCallsNobody) {
  Crew& crew = solo_crew();
  const auto call = crew.call(crew.enlist([](ByteReader&) { FAIL(); }), "nothing");
  EXPECT_TRUE(crew.is_alone() && crew.leads() && crew.is_idle());
}

TEST(Slices, AreWholeBlocksAndCoverEverything) {
  for (const size_t size : {size_t{1}, size_t{10}, size_t{11}, size_t{95}, size_t{100}})
    for (const int ranks : {1, 2, 3, 4, 8, 20}) {
      size_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice slice = slice_of(size, 10, rank, ranks);
        EXPECT_EQ(slice.begin, end);
        EXPECT_TRUE(slice.begin % 10 == 0 || slice.begin == size);
        end = slice.end;
      }
      EXPECT_EQ(end, size) << size << " over " << ranks;
    }
}

}  // namespace
}  // namespace ropd::comm
