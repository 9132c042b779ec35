// The laboratory as a user runs it, with few responses: to the end, and interrupted on the way.
#include <gtest/gtest.h>
#include <ropd_source_directory.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/test_data.h"

namespace ropd {
namespace {

using test::TemporaryDirectory;

pid_t start_lab(const Path& out) {
  const pid_t child = fork();
  if (child == 0) {
    const std::string path = out.string();
    if (!freopen((path + ".log").c_str(), "a", stdout) || !freopen((path + ".log").c_str(), "a", stderr))
      _exit(126);
    execl(ROPD_PROGRAM, "ropd", "lab", "--fast", "--responses", "32", "--models",
          ROPD_SOURCE_DIR "/lab/models", "--out", path.c_str(), nullptr);
    _exit(127);
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string newest_weights(const Path& run) {
  const std::string latest = read_file(run / "checkpoints" / "LATEST");
  return sha256_file(run / "checkpoints" / latest.substr(0, latest.find('\n')) / "model" /
                     "model.safetensors");
}

TEST(Lab, InterruptedAndKilledEndsAsIfItHadRunThrough) {
  TemporaryDirectory directory;
  ASSERT_EQ(wait_for(start_lab(directory / "through")), 0) << read_file(directory / "through.log");
  // Interrupted politely, then killed, at moments spread over the run; then left alone.
  for (const int milliseconds : {300, 900, 1700, 2600}) {
    const pid_t child = start_lab(directory / "broken");
    usleep(static_cast<useconds_t>(milliseconds) * 1000);
    kill(child, milliseconds % 2 == 0 && milliseconds > 1000 ? SIGKILL : SIGINT);
    wait_for(child);
  }
  ASSERT_EQ(wait_for(start_lab(directory / "broken")), 0) << read_file(directory / "broken.log");
  EXPECT_EQ(read_file(directory / "through/summary.txt"), read_file(directory / "broken/summary.txt"));
  for (const char* run : {"seed-1/current", "seed-1/initial", "seed-1/fixed"})
    EXPECT_EQ(newest_weights(directory / "through" / run), newest_weights(directory / "broken" / run)) << run;
  EXPECT_GT(std::filesystem::file_size(directory / "through/report.html"), 20000u);
}

}  // namespace
}  // namespace ropd
