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
  void TearDown() override {
    set_log_level(LogLevel::info);
    set_log_format(LogFormat::text);
  }
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

TEST_F(Log, NoTerminalObeysAQuotedText) {
  EXPECT_EQ(stderr_of([] { log_info("query \x1b[2J\u202E"); }), "query ␛[2J⟨U+202E⟩\n");
  EXPECT_EQ(stderr_of([] { write_failure("ropd", "bad name \x1b]0;x\x07"); }), "ropd: bad name ␛]0;x␇\n");
}

TEST_F(Log, AQuotedTextIsNoSecondLine) {
  EXPECT_EQ(stderr_of([] { write_failure("ropd", "query_id \"a\nropd: all is well\" occurs twice"); }),
            "ropd: query_id \"a␊ropd: all is well\" occurs twice\n");
  EXPECT_EQ(stderr_of([] { log_warning("a\nb"); }), "warning: a␊b\n");
}

TEST_F(Log, WritesJsonLinesOnRequest) {
  set_log_format(LogFormat::json);
  EXPECT_EQ(stderr_of([] { log_info("a \"b\"\n\x1b"); }),
            "{\"level\":\"info\",\"message\":\"a \\\"b\\\"\\n\\u001b\"}\n");
  EXPECT_EQ(stderr_of([] { log_warning("slow"); }), "{\"level\":\"warning\",\"message\":\"slow\"}\n");
  EXPECT_EQ(stderr_of([] { write_failure("ropd", "no"); }), "{\"level\":\"error\",\"message\":\"no\"}\n");
}

TEST_F(Log, LiveLineIsCutToTheWidth) {
  const auto shown = stderr_of([] {
    show_live_line(std::string(300, 'x'));
    show_live_line("");
  });
  EXPECT_EQ(shown, "\r\x1b[K" + std::string(78, 'x') + "…\r\x1b[K");  // no terminal: as if it had 80
}

}  // namespace
}  // namespace ropd
