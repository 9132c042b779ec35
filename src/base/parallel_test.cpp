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

}  // namespace
}  // namespace ropd
