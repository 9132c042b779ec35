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

TEST(StopDeathTest, OneInterruptDeliveredTwiceIsOne) {
  const auto interrupt_twice_at_once = [] {
    clear_stop_request();
    install_stop_handlers();
    raise(SIGINT);
    raise(SIGINT);
    _exit(stop_requested() ? 0 : 1);
  };
  EXPECT_EXIT(interrupt_twice_at_once(), testing::ExitedWithCode(0), "");
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
