#include "base/parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace ropd {
namespace {

class ManyThreads : public testing::Test {
 protected:
  void SetUp() override { set_num_threads(5); }
  void TearDown() override { set_num_threads(before_); }

 private:
  const size_t before_ = num_threads();
};
using ParallelTasks = ManyThreads;
using InTurn = ManyThreads;

TEST_F(ParallelTasks, RunsEachTaskOnceInALaneOfItsOwn) {
  for (const size_t count : {0, 1, 3, 40}) {
    const size_t lanes = num_lanes(count);
    std::vector<std::atomic<int>> runs(count), lane_in_use(5);
    parallel_tasks(count, [&](size_t task, size_t lane) {
      ASSERT_LT(lane, lanes);
      EXPECT_EQ(lane_in_use[lane]++, 0);
      ++runs[task];
      --lane_in_use[lane];
    });
    for (const auto& run : runs) EXPECT_EQ(run, 1);
  }
}

TEST_F(ParallelTasks, ThrowsWhatATaskHasThrown) {
  EXPECT_THROW(parallel_tasks(9,
                              [](size_t task, size_t) {
                                if (task == 4) throw std::runtime_error("four");
                              }),
               std::runtime_error);
}

TEST_F(ParallelTasks, InsideAnotherStaysOnItsThread) {
  parallel_tasks(4, [](size_t, size_t) {
    EXPECT_EQ(num_lanes(), 1u);
    parallel_tasks(4, [](size_t, size_t lane) { EXPECT_EQ(lane, 0u); });
  });
}

// Every task writes its number once a turn, without any other protection.
TEST_F(InTurn, TasksAddOneBehindTheOther) {
  constexpr size_t kTasks = 30;
  constexpr int kTurns = 4;
  std::vector<std::vector<size_t>> order(kTurns);
  std::vector<std::atomic<int>> turns(kTasks);
  parallel_tasks(kTasks, [&](size_t task, size_t) {
    Turn turn(task > 0 ? &turns[task - 1] : nullptr, &turns[task]);
    for (auto& line : order) turn.take([&] { line.push_back(task); });
  });
  for (const auto& line : order) {
    ASSERT_EQ(line.size(), kTasks);
    for (size_t i = 0; i < kTasks; ++i) EXPECT_EQ(line[i], i);
  }
}

TEST_F(InTurn, ATaskThatFailsKeepsNobodyWaiting) {
  std::vector<std::atomic<int>> turns(20);
  std::atomic<int> added = 0;
  const auto run = [&](size_t task, size_t) {
    Turn turn(task > 0 ? &turns[task - 1] : nullptr, &turns[task]);
    turn.take([&] { ++added; });
    if (task == 3) throw std::runtime_error("three");
    turn.take([&] { ++added; });
  };
  EXPECT_THROW(parallel_tasks(20, run), std::runtime_error);
  EXPECT_EQ(added, 39);
}

TEST(ParallelInTwoSteps, PreparesAndFinishesEveryTaskOnceFinishingInOrder) {
  for (const int threads : {1, 2, 5}) {
    const size_t before = num_threads();
    set_num_threads(threads);
    constexpr size_t kTasks = 200;
    const size_t slots = static_cast<size_t>(threads) + 1;
    std::vector<std::atomic<int>> prepared(kTasks), finished(kTasks);
    std::vector<std::atomic<int>> users(slots);  // of each slot, between the two steps
    std::atomic<size_t> next = 0;
    std::atomic<bool> is_in_order = true, is_alone = true;
    parallel_in_two_steps(
        kTasks, slots,
        [&](size_t task, size_t slot) {
          if (++users[slot] != 1) is_alone = false;
          ++prepared[task];
        },
        [&](size_t task) { return task % 3 == 0; },
        [&](size_t task, size_t slot) {
          if (prepared[task] != 1 || task > next + static_cast<size_t>(threads)) is_in_order = false;
          ++finished[task];
          --users[slot];
          ++next;
        });
    set_num_threads(before);
    for (size_t task = 0; task < kTasks; ++task) EXPECT_EQ(finished[task], 1) << task;
    EXPECT_TRUE(is_in_order);
    EXPECT_TRUE(is_alone);
  }
}

TEST(ParallelInTwoSteps, AFailureInEitherStepEndsIt) {
  const size_t before = num_threads();
  set_num_threads(3);
  for (const bool in_finish : {false, true}) {
    const auto fails_at = [](bool fails, size_t task) {
      if (fails && task == 20) throw std::runtime_error("task 20");
    };
    EXPECT_THROW(parallel_in_two_steps(
                     100, 4, [&](size_t task, size_t) { fails_at(!in_finish, task); },
                     [](size_t) { return true; }, [&](size_t task, size_t) { fails_at(in_finish, task); }),
                 std::runtime_error);
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace ropd
