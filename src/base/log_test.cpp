#include "base/log.h"

#include <gtest/gtest.h>

namespace ropd {
namespace {

template <class Action>
std::string stderr_of(Action action) {
  testing::internal::CaptureStderr();
  action();
  return testing::internal::GetCapturedStderr();
}

class Log : public testing::Test {
 protected:
  void TearDown() override { set_log_level(LogLevel::info); }
};

TEST_F(Log, WritesOneLinePerMessage) {
  EXPECT_EQ(stderr_of([] { log_info("read ", 3, " files"); }), "read 3 files\n");
  EXPECT_EQ(stderr_of([] { log_warning("slow disk"); }), "warning: slow disk\n");
}

TEST_F(Log, LevelLimitsWhatIsShown) {
  set_log_level(LogLevel::warnings);
  EXPECT_EQ(stderr_of([] { log_info("a"), log_warning("b"); }), "warning: b\n");
  set_log_level(LogLevel::quiet);
  EXPECT_EQ(stderr_of([] { log_info("a"), log_warning("b"); }), "");
}

TEST_F(Log, MessageGoesAboveTheLiveLine) {
  const auto shown = stderr_of([] {
    show_live_line("3/7");
    log_info("hello");
    show_live_line("");
  });
  EXPECT_EQ(shown, "\r\x1b[K3/7\r\x1b[Khello\n3/7\r\x1b[K");
}

}  // namespace
}  // namespace ropd
