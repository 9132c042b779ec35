#include "base/one_thread.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/parallel.h"

namespace ropd {
namespace {

TEST(OneThread, KeepsParallelWorkOnItsThread) {
  const size_t before = num_threads();
  set_num_threads(4);
  {
    const OneThread here;
    parallel_tasks(100, [me = std::this_thread::get_id()](size_t, size_t worker) {
      EXPECT_EQ(worker, 0u);
      EXPECT_EQ(std::this_thread::get_id(), me);
    });
    EXPECT_TRUE(is_in_parallel());
  }
  EXPECT_FALSE(is_in_parallel());
  EXPECT_EQ(num_workers(), 4u);
  set_num_threads(before);
}

TEST(OneThread, IsOfItsThreadAloneAndEndsWithTheOutermost) {
  const OneThread outer;
  { const OneThread inner; }
  EXPECT_TRUE(OneThread::is_here());
  std::thread([] { EXPECT_FALSE(OneThread::is_here()); }).join();
}

}  // namespace
}  // namespace ropd
