#include "base/stopwatch.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace ropd {
namespace {

TEST(Timed, GivesTheResultAndAddsToWhatIsThere) {
  double seconds = 5;
  EXPECT_EQ(timed(seconds, [] { return 7; }), 7);
  EXPECT_GE(seconds, 5);
  const double before = seconds;
  EXPECT_THROW(timed(seconds, [] { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_GE(seconds, before);
  EXPECT_GE(Stopwatch().seconds(), 0);
}

}  // namespace
}  // namespace ropd
