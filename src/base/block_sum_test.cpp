#include "base/block_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/threads.h"

namespace ropd {
namespace {

double value_at(size_t i) { return std::sin(static_cast<double>(i)) * 1e3; }

TEST(BlockSum, OfNothingIsZero) { EXPECT_EQ(block_sum(0, value_at), 0.0); }

TEST(BlockSum, CountsEveryElementOnceAtOddSizes) {
  for (size_t size : {size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{65535}, size_t{65536}, size_t{65537},
                      size_t{200003}})
    EXPECT_EQ(block_sum(size, [](size_t) { return 1.0; }), static_cast<double>(size));
}

TEST(BlockSum, IsTheSumUpToRounding) {
  double expected = 0;
  for (size_t i = 0; i < 150001; ++i) expected += value_at(i);
  EXPECT_NEAR(block_sum(150001, value_at), expected, 1e-7);
}

TEST(BlockSum, HasTheSameBitsForAnyNumberOfThreads) {
  const size_t threads = num_threads();
  set_num_threads(1);
  const double alone = block_sum(700001, value_at);
  for (int count : {2, 3, 5}) {
    set_num_threads(count);
    EXPECT_EQ(block_sum(700001, value_at), alone);
  }
  set_num_threads(threads);
}

}  // namespace
}  // namespace ropd
