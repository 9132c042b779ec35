#include "base/run_progress.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/json.h"
#include "base/terminal_line.h"

namespace ropd {
namespace {

RunStatus in_the_middle() {
  return {.name = "qwen3-0.6b-ropd",
          .iteration = 7,
          .iterations = 15,
          .stage = {.stage = "rollouts",
                    .done = 312,
                    .total = 480,
                    .rate = 41200,
                    .unit = "tok",
                    .note = "mean length 212, 3% at cap"},
          .seconds_left = 723};
}

TEST(RunLine, TellsOfTheWholeRun) {
  EXPECT_EQ(run_line(in_the_middle(), 200),
            "qwen3-0.6b-ropd  7/15  rollouts  312/480  41,200 tok/s  12:03 left  mean length 212, 3% at cap");
  EXPECT_EQ(run_line(in_the_middle(), 79),
            "qwen3-0.6b-ropd  7/15  rollouts  312/480  41,200 tok/s  12:03 left");
}

TEST(RunLine, MovesInsideOneLongResponse) {
  EXPECT_EQ(run_line({.name = "ropd",
                      .iteration = 7,
                      .iterations = 15,
                      .stage = {.stage = "teacher scores", .done = 0, .total = 1, .part = 0.34}},
                     std::nullopt),
            "ropd  7/15  teacher scores  0.34/1");
}

TEST(RunLine, KeepsWhatMattersOnANarrowTerminal) {
  EXPECT_EQ(run_line(in_the_middle(), 49), "7/15  rollouts  312/480  41,200 tok/s  12:03 left");
  EXPECT_EQ(run_line(in_the_middle(), 39), "7/15  rollouts  312/480  12:03 left");
  for (size_t columns = 40; columns <= 200; ++columns)
    EXPECT_LE(columns_of(run_line(in_the_middle(), columns)), columns);
}

TEST(RunLine, LeavesOutWhatIsNotKnownYet) {
  EXPECT_EQ(
      run_line({.name = "a", .iterations = 15, .stage = {.stage = "initial bank", .done = 3, .total = 9}},
               80),
      "a  initial bank  3/9");
}

TEST(RunSecondsLeft, CountsTheRestOfThePresentIteration) {
  EXPECT_EQ(run_seconds_left(10, 3, 4), 26);
  EXPECT_EQ(run_seconds_left(10, 3, 14), 20);  // takes longer than the others
  EXPECT_EQ(run_seconds_left(10, 0, 0), 0);
}

TEST(RunProgress, StagesInsideItTellItAndShowNothingThemselves) {
  std::vector<std::string> heard;
  testing::internal::CaptureStderr();
  {
    RunProgress run("a", 15, 10.0, [&](const RunStatus& status) {
      heard.push_back(std::to_string(status.iteration) + " " + status.stage.stage);
    });
    run.begin_iteration(3);
    Progress first("rollouts", 4);
    first.finish();
    Progress second("scores", 4);
    second.finish();
    EXPECT_TRUE(in_run());
  }
  EXPECT_FALSE(in_run());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // no terminal: whoever drives the run writes lines
  EXPECT_EQ(heard, (std::vector<std::string>{"0 ", "3 rollouts", "3 scores"}));
}

TEST(RunProgress, JsonLinesOfStagesGoOn) {
  set_progress_mode(ProgressMode::json);
  testing::internal::CaptureStderr();
  {
    RunProgress run("a", 15);
    Progress("rollouts", 4).finish();
  }
  set_progress_mode(ProgressMode::automatic);
  EXPECT_EQ(parse_json(testing::internal::GetCapturedStderr(), "stderr")["stage"], "rollouts");
}

TEST(RunProgress, KnowsTheTimeLeftOnlyWhenAnIterationWasTimed) {
  RunProgress fresh("a", 15), resumed("b", 15, 10.0);
  EXPECT_FALSE(fresh.seconds_left());
  fresh.begin_iteration(1);
  fresh.end_iteration();
  EXPECT_TRUE(fresh.seconds_left());
  resumed.begin_iteration(15);
  resumed.end_iteration();
  EXPECT_EQ(resumed.seconds_left(), 0.0);
  RunProgress in_the_middle("c", 15, 10.0);
  in_the_middle.begin_iteration(6);
  EXPECT_GE(*in_the_middle.seconds_left(), 90.0);  // however slow the machine
  EXPECT_LE(*in_the_middle.seconds_left(), 100.0);
}

}  // namespace
}  // namespace ropd
