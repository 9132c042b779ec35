#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
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

TEST_F(ParallelTasks, RunsEachTaskOnceWithAWorkerOfItsOwn) {
  for (const size_t count : {0, 1, 3, 40}) {
    const size_t workers = num_workers(count);
    std::vector<std::atomic<int>> runs(count), worker_in_use(5);
    parallel_tasks(count, [&](size_t task, size_t worker) {
      ASSERT_LT(worker, workers);
      EXPECT_EQ(worker_in_use[worker]++, 0);
      ++runs[task];
      --worker_in_use[worker];
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
    EXPECT_EQ(num_workers(), 1u);
    parallel_tasks(4, [](size_t, size_t worker) { EXPECT_EQ(worker, 0u); });
  });
}

TEST(Runs, AreTakenFromTheFrontAndByOthersFromTheBack) {
  Runs runs(7, 2);  // 0 to 2 and 3 to 6
  const auto take = [&](size_t worker) {
    const Runs::Taken taken = runs.take(worker);
    return std::pair(taken.index, taken.next);
  };
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_EQ(take(0), Pair(0, 1));
  EXPECT_EQ(take(1), Pair(3, 4));
  EXPECT_EQ(take(0), Pair(1, 2));
  EXPECT_EQ(take(0), Pair(2, -1));
  EXPECT_EQ(take(0), Pair(6, 5)) << "of the other one";
  EXPECT_EQ(take(1), Pair(4, 5));
  EXPECT_EQ(take(0), Pair(5, -1));
  EXPECT_EQ(take(1), Pair(-1, -1));
}

TEST_F(ManyThreads, EveryPieceOfRunsIsTakenOnce) {
  for (const int64_t count : {0, 1, 4, 1000})
    for (const size_t workers : {1, 5, 200}) {
      Runs runs(count, workers);
      std::vector<std::atomic<int>> taken(static_cast<size_t>(count));
      run_on_threads(5, kMuchWork, [&](size_t worker) {
        for (Runs::Taken piece; (piece = runs.take(worker)).index >= 0;)
          ++taken[static_cast<size_t>(piece.index)];
      });
      for (const auto& times : taken) EXPECT_EQ(times, 1) << count << " pieces, " << workers << " workers";
    }
}

}  // namespace
}  // namespace ropd
