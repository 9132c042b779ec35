#include "io/progress_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/json.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

RunStatus in_the_middle() {
  return {
      .name = "a",
      .iteration = 7,
      .iterations = 15,
      .stage = {.stage = "rollouts", .done = 312, .total = 480, .part = 0.25, .rate = 41200, .unit = "tok"},
      .seconds_left = 723};
}

TEST(ProgressFile, IsReadAsItWasWritten) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "progress.json";
  ProgressFile file(path);
  EXPECT_FALSE(read_progress(path));
  file.write(in_the_middle());
  const auto read = read_progress(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process, this_process());
  EXPECT_EQ(read->phase, RunPhase::running);
  EXPECT_GT(read->heartbeat, 1.7e9);
  EXPECT_EQ(read->status.iteration, 7u);
  EXPECT_EQ(read->status.stage.stage, "rollouts");
  EXPECT_EQ(read->status.stage.done, 312u);
  EXPECT_EQ(read->status.stage.part, 0.25);
  EXPECT_EQ(read->status.seconds_left, 723.0);
  file.finish(RunPhase::stopped);
  EXPECT_EQ(read_progress(path)->phase, RunPhase::stopped);
}

TEST(ProgressFile, LeavesFailedWhenARunEndsInAnError) {
  const test::TemporaryDirectory directory;
  { ProgressFile(directory / "progress.json").write({}); }
  EXPECT_EQ(read_progress(directory / "progress.json")->phase, RunPhase::failed);
}

TEST(ProgressFile, ADiskThatRefusesItStopsNothing) {
  const test::TemporaryDirectory directory;
  ProgressFile file(directory / "missing" / "progress.json");
  file.write(in_the_middle());
  EXPECT_FALSE(read_progress(directory / "missing" / "progress.json"));
}

TEST(ReadProgress, TakesNothingFromAFileThatIsNoRecord) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "progress.json";
  const std::string good = progress_json({.process = this_process(), .status = in_the_middle()});
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1,2]"), std::string("{\"host\":3}"),
        good.substr(0, 90), std::string(70'000, ' ') + good}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_FALSE(read_progress(path)) << text.substr(0, 40);
  }
  std::ofstream(path, std::ios::trunc) << good;
  EXPECT_TRUE(read_progress(path));
}

TEST(IsAlive, TellsAProcessFromOneThatIsGone) {
  EXPECT_EQ(is_alive(this_process()), true);
  ProcessIdentity other = this_process();
  other.start_ticks += 1;  // the number was given to a later process
  EXPECT_EQ(is_alive(other), false);
  other.host = "elsewhere.example";
  EXPECT_FALSE(is_alive(other).has_value());

  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);  // a zombie now
  ProcessIdentity gone = this_process();
  gone.pid = child;
  EXPECT_EQ(is_alive(gone), false);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(is_alive(gone), false);
}

}  // namespace
}  // namespace ropd::io
