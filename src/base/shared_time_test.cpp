#include "base/shared_time.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/stopwatch.h"

namespace ropd {
namespace {

// Until the clock has moved on by a millisecond.
void spend_time() {
  for (const Stopwatch watch; watch.seconds() < 1e-3;) {
  }
}

class SharedTimeTest : public testing::Test {
 protected:
  SharedTimeTest() { set_num_threads(4); }
  ~SharedTimeTest() override { set_num_threads(before_); }

 private:
  const size_t before_ = num_threads();
};

TEST_F(SharedTimeTest, CountsWorkOfSeveralThreadsAndNothingElse) {
  const double before = shared_seconds();
  spend_time();
  EXPECT_EQ(shared_seconds(), before);
  parallel_tasks(1, [](size_t, size_t) { spend_time(); });
  EXPECT_EQ(shared_seconds(), before) << "one task has one thread";
  parallel_tasks(8, [](size_t, size_t) { spend_time(); });
  EXPECT_GE(shared_seconds(), before + 1e-3);
}

TEST_F(SharedTimeTest, ParallelWorkInsideOfParallelWorkCountsOnce) {
  const Stopwatch watch;
  const double before = shared_seconds();
  parallel_tasks(4, [](size_t, size_t) { parallel_tasks(4, [](size_t, size_t) { spend_time(); }); });
  const double counted = shared_seconds() - before;
  EXPECT_GE(counted, 4e-3);  // four in a row on a thread at least
  EXPECT_LE(counted, watch.seconds());
}

TEST_F(SharedTimeTest, TheRestIsOneThreads) {
  const Stopwatch watch;
  OneThreadWatch one_thread;
  const double before = shared_seconds();
  spend_time();
  parallel_tasks(8, [](size_t, size_t) { spend_time(); });
  const double alone = one_thread.take_seconds(), all = watch.seconds();
  EXPECT_GE(alone, 1e-3);
  EXPECT_LE(alone + (shared_seconds() - before), all + 1e-9);
  EXPECT_LT(one_thread.take_seconds(), all) << "from the last time on";
}

}  // namespace
}  // namespace ropd
