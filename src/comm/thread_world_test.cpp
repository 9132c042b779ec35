#include "comm/thread_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/world_checks.h"

namespace ropd::comm {
namespace {

class ThreadWorlds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadWorlds, testing::Values(1, 2, 3, 4));

TEST_P(ThreadWorlds, DoWhatEveryWorldDoes) { run_thread_world(GetParam(), test::check_world); }

std::string failure_of(int size, const std::function<void(World&)>& work) {
  try {
    run_thread_world(size, work);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ThreadWorld, WaitingForARankThatLeftNamesRankActivityAndOperation) {
  EXPECT_THAT(failure_of(2,
                         [](World& world) {
                           if (world.rank() == 1) return;
                           world.begin_activity("step 7, update");
                           (void)world.receive(1, Tag::slice);
                         }),
              testing::AllOf(testing::HasSubstr("rank 1"), testing::HasSubstr("step 7, update"),
                             testing::HasSubstr("slices")));
}

TEST(ThreadWorld, FirstFailureIsTheOneToldWhoeverWaitedForIt) {
  EXPECT_EQ(failure_of(3,
                       [](World& world) {
                         if (world.rank() == 2) fail("no disk");
                         barrier(world);
                       }),
            "no disk");
}

}  // namespace
}  // namespace ropd::comm
