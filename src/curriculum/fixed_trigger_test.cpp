#include "curriculum/fixed_trigger.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::curriculum {
namespace {

TEST(FixedTrigger, IsSetAtItsIteration) {
  FixedTrigger trigger(3);
  EXPECT_FALSE(trigger.needs_gradients());
  EXPECT_FALSE(trigger.observe({.iteration = 1}).is_set);
  EXPECT_FALSE(trigger.observe({.iteration = 2}).is_set);
  EXPECT_TRUE(trigger.observe({.iteration = 3}).is_set);
}

TEST(FixedTrigger, AStageThatBeginsLaterEndsWithItsFirstIteration) {
  FixedTrigger trigger(3);
  EXPECT_FALSE(trigger.observe({.iteration = 4, .counts = false}).is_set);
  EXPECT_TRUE(trigger.observe({.iteration = 5}).is_set);
  EXPECT_EQ(trigger.earliest_end(0), 3u);
  EXPECT_EQ(trigger.earliest_end(4), 5u);
}

TEST(FixedTrigger, RefusesIterationZero) { EXPECT_THROW(FixedTrigger(0), Error); }

}  // namespace
}  // namespace ropd::curriculum
