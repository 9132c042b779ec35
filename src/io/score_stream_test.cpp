#include "io/score_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "support/kill_at_system_call.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using testing::HasSubstr;

class ScoreStreams : public testing::Test {
 protected:
  ScoreStreams() { set_log_level(LogLevel::quiet); }
  ~ScoreStreams() override { set_log_level(LogLevel::info); }
  // What a command does: goes on behind the rows that are there.
  void write_all() const {
    ScoreStream stream(out(), "origin");
    for (uint64_t i = stream.num_done(); i < 3; ++i) {
      stream.add("{\"row\":" + std::to_string(i) + "}");
      stream.sync();
    }
    stream.finish();
  }
  Path out() const { return folder_ / "scores.jsonl"; }
  const std::string expected_ = "{\"row\":0}\n{\"row\":1}\n{\"row\":2}\n";
  const test::TemporaryDirectory folder_;
};

TEST_F(ScoreStreams, EndWithTheRowsAndNothingBesideThem) {
  write_all();
  EXPECT_EQ(read_file(out()), expected_);
  EXPECT_FALSE(std::filesystem::exists(partial_scores(out())));
}

TEST_F(ScoreStreams, GoOnAfterAKillAtAnySystemCall) {
  const int kills = test::kill_at_every_system_call(
      [&] {
        std::filesystem::remove(out());
        std::filesystem::remove(partial_scores(out()));
      },
      [&] { write_all(); },
      [&](int call) {
        if (!std::filesystem::exists(out())) write_all();
        EXPECT_EQ(read_file(out()), expected_) << call;
      });
  EXPECT_GT(kills, 10);
}

TEST_F(ScoreStreams, KeepNoRowThatChanged) {
  {
    ScoreStream stream(out(), "origin");
    stream.add("{\"row\":0}");
    stream.add("{\"row\":1}");
  }
  std::string content = read_file(partial_scores(out()));
  content[content.find("\"row\":1") + 6] = '7';
  write_file_atomically(partial_scores(out()), content);
  EXPECT_EQ(ScoreStream(out(), "origin").num_done(), 1u);
}

TEST_F(ScoreStreams, NoticeARowThatIsGone) {
  {
    ScoreStream stream(out(), "origin");
    for (int i = 0; i < 3; ++i) stream.add("{\"row\":" + std::to_string(i) + "}");
  }
  std::string content = read_file(partial_scores(out()));
  const size_t second = content.find('\n', content.find("\"row\":0")) + 1;
  content.erase(second, content.find('\n', second) + 1 - second);
  write_file_atomically(partial_scores(out()), content);
  EXPECT_EQ(ScoreStream(out(), "origin").num_done(), 1u);
}

TEST_F(ScoreStreams, RefuseWhatWasBegunInAnotherWay) {
  { ScoreStream stream(out(), "origin"); }
  try {
    ScoreStream stream(out(), "another");
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("begun with other rollouts, models or settings"));
  }
}

TEST_F(ScoreStreams, ADeviceGetsItsRowsAtOnce) {
  ScoreStream stream("/dev/null", "origin");
  stream.add("{}");
  stream.finish();
  EXPECT_FALSE(std::filesystem::exists("/dev/null.partial.jsonl"));
}

}  // namespace
}  // namespace ropd::io
