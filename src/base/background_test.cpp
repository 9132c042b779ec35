#include "base/background.h"

#include <gtest/gtest.h>

#include <latch>

#include "base/error.h"
#include "base/threads.h"

namespace ropd {
namespace {

TEST(Background, WorksWhileItsOwnerGoesOn) {
  Background background;
  std::latch owner_went_on(1);
  bool is_done = false;
  background.begin([&] {
    owner_went_on.wait();  // for ever, were the owner waiting
    is_done = true;
  });
  owner_went_on.count_down();
  background.wait();
  EXPECT_TRUE(is_done);
}

TEST(Background, ThrowsAFailureOnceWhereItIsWaitedFor) {
  Background background;
  background.begin([] { fail("the disk is full"); });
  EXPECT_THROW(background.wait(), Error);
  EXPECT_NO_THROW(background.wait());
  background.begin([] { fail("again"); });
  bool was_begun = false;
  EXPECT_THROW(background.begin([&] { was_begun = true; }), Error);
  EXPECT_FALSE(was_begun);
}

TEST(Background, WaitsForTheOneBeforeAndAtItsEnd) {
  int done = 0;  // by one thread after the other
  {
    Background background;
    for (int i = 0; i < 3; ++i) background.begin([&done, i] { EXPECT_EQ(done++, i); });
  }
  EXPECT_EQ(done, 3);
  { Background nothing; }
}

TEST(Background, StaysOnItsThread) {
  Background background;
  background.begin([] { EXPECT_TRUE(is_in_parallel()); });
  background.wait();
  EXPECT_FALSE(is_in_parallel());
}

}  // namespace
}  // namespace ropd
