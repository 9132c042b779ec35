#include "base/stop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace ropd {
namespace {

TEST(Stop, IsRequestedByInterruptAndTermination) {
  install_stop_handlers();
  for (const int signal_number : {SIGINT, SIGTERM}) {
    clear_stop_request();
    EXPECT_FALSE(stop_requested());
    raise(signal_number);
    EXPECT_TRUE(stop_requested());
  }
  clear_stop_request();
}

TEST(Stop, CanBeRequestedByTheProgram) {
  clear_stop_request();
  request_stop();
  EXPECT_TRUE(stop_requested());
  clear_stop_request();
  EXPECT_FALSE(stop_requested());
}

TEST(Stop, OneInterruptDeliveredTwiceIsOne) {
  EXPECT_TRUE(is_same_interrupt(5000, 5000));
  EXPECT_TRUE(is_same_interrupt(5000, 5100));
  EXPECT_FALSE(is_same_interrupt(5000, 5101));
}

TEST(StopDeathTest, SecondInterruptEndsTheProgramWith130) {
  const auto interrupt_twice = [] {
    clear_stop_request();
    install_stop_handlers();
    raise(SIGTERM);
    raise(SIGINT);
    if (!stop_requested()) _exit(1);
    usleep(150'000);
    raise(SIGINT);
    _exit(0);
  };
  EXPECT_EXIT(interrupt_twice(), testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace ropd
