#include "comm/world.h"

#include <gtest/gtest.h>

#include "support/world_checks.h"

namespace ropd::comm {
namespace {

TEST(SoloWorld, DoesWhatEveryWorldDoes) {
  SoloWorld world;
  test::check_world(world);
}

TEST(SoloWorld, HasNobodyToTalkTo) {
  SoloWorld world;
  EXPECT_EQ(world.size(), 1);
  EXPECT_THROW(world.send({}, 1, Tag::call), Error);
  EXPECT_THROW(world.receive(std::nullopt, Tag::call, Waiting::alone), Error);
}

TEST(World, TellsWhatItDoes) {
  SoloWorld world;
  world.begin_activity("step 12, gradient");
  EXPECT_EQ(world.activity(), "step 12, gradient");
}

}  // namespace
}  // namespace ropd::comm
