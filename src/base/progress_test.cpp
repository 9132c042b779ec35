#include "base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace ropd {
namespace {

using testing::MatchesRegex;

class ProgressTest : public testing::Test {
 protected:
  void TearDown() override { set_progress_mode(ProgressMode::automatic); }
  static std::string shown_by_a_short_stage() {
    testing::internal::CaptureStderr();
    {
      Progress progress("rollouts", 480, "tok");
      for (uint64_t done = 1; done <= 480; ++done) progress.update(done, done * 1000, "mean length 1000");
    }
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(ProgressTest, WritesPlainLinesWhereStderrIsNoTerminal) {
  // On a busy machine the stage may take long enough for lines on the way.
  EXPECT_THAT(shown_by_a_short_stage(),
              MatchesRegex("(rollouts  .* left  mean length 1000\n)*"
                           "rollouts  480/480  [0-9.,MB]+ tok/s  [0-9:]+  mean length 1000\n"));
}

TEST_F(ProgressTest, IsSilentWhenQuiet) {
  set_progress_mode(ProgressMode::quiet);
  EXPECT_EQ(shown_by_a_short_stage(), "");
}

TEST_F(ProgressTest, WritesJsonLinesOnRequest) {
  set_progress_mode(ProgressMode::json);
  const std::string lines = shown_by_a_short_stage();
  const Json line = parse_json(lines.substr(lines.rfind('\n', lines.size() - 2) + 1), "stderr");
  EXPECT_EQ(line["stage"], "rollouts");
  EXPECT_EQ(line["done"], 480);
  EXPECT_EQ(line["total"], 480);
  EXPECT_EQ(line["finished"], true);
  EXPECT_GT(line["rate"].get<double>(), 0.0);
}

TEST_F(ProgressTest, TellsTheShareOfTheOneInWork) {
  set_progress_mode(ProgressMode::json);
  testing::internal::CaptureStderr();
  Progress("teacher scores", 4).update(2.5);
  const Json line = parse_json(testing::internal::GetCapturedStderr(), "line");
  EXPECT_EQ(line["done"], 2);
  EXPECT_EQ(line["part"], 0.5);
}

TEST(StageLine, ShowsTheShareOfTheOneInWork) {
  StageStatus status{.stage = "teacher scores", .done = 3, .total = 12, .part = 0.999, .seconds = 10};
  EXPECT_EQ(format_done(status.done, status.total, status.part), "3.99/12");
  EXPECT_EQ(format_done(3, 12, 0.001), "3/12");
  status = {.stage = "teacher scores", .done = 0, .total = 1, .part = 0.25, .seconds = 10};
  EXPECT_NEAR(status.seconds_left(), 30, 1e-9);
  EXPECT_THAT(stage_line(status, std::nullopt), testing::HasSubstr("0.25/1"));
  EXPECT_THAT(stage_line(status, std::nullopt), testing::HasSubstr("00:30 left"));
}

TEST(FormatDuration, ShowsHoursOnlyWhenThereAreAny) {
  EXPECT_EQ(format_duration(12.2), "00:12");
  EXPECT_EQ(format_duration(59.7), "01:00");
  EXPECT_EQ(format_duration(3723), "01:02:03");
  EXPECT_EQ(format_duration(400000), "111:06:40");
}

TEST(FormatCount, KeepsFourDigitsOrSeparators) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(0.25), "0.25");
  EXPECT_EQ(format_count(41200), "41,200");
  EXPECT_EQ(format_count(999999.6), "1.0M");
  EXPECT_EQ(format_count(1234567), "1.2M");
  EXPECT_EQ(format_count(999.96e6), "1.0B");
}

TEST(FormatBytes, UsesDecimalUnits) {
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1234), "1.2 kB");
  EXPECT_EQ(format_bytes(999960), "1.0 MB");
  EXPECT_EQ(format_bytes(1.2e9), "1.2 GB");
}

}  // namespace
}  // namespace ropd
