#include "base/stop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace ropd {
namespace {

TEST(Stop, IsRequestedByInterruptTerminationAndHangUp) {
  signal(SIGHUP, SIG_DFL);  // these tests may have been started by nohup
  install_stop_handlers();
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    clear_stop_request();
    EXPECT_FALSE(stop_requested());
    raise(signal_number);
    EXPECT_TRUE(stop_requested());
  }
  clear_stop_request();
}

TEST(StopDeathTest, AHangUpThatWasIgnoredStaysIgnored) {
  const auto hang_up = [] {
    clear_stop_request();
    signal(SIGHUP, SIG_IGN);
    install_stop_handlers();
    raise(SIGHUP);
    _exit(stop_requested() ? 1 : 0);
  };
  EXPECT_EXIT(hang_up(), testing::ExitedWithCode(0), "");
}

TEST(StopDeathTest, AReaderOfMessagesMayLeave) {
  const auto write_to_nobody = [] {
    install_stop_handlers();
    int ends[2];
    if (pipe(ends) != 0) _exit(2);
    close(ends[0]);
    _exit(write(ends[1], "x", 1) == -1 && errno == EPIPE ? 0 : 1);
  };
  EXPECT_EXIT(write_to_nobody(), testing::ExitedWithCode(0), "");
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
