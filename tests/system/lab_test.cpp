// The laboratory as a user runs it, with few responses: to the end, and interrupted on the way by kills while
// two processes work on it. It is a study, so this is the test of `ropd study` under the same conditions.
#include <gtest/gtest.h>
#include <ropd_source_directory.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
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

// All that a study made, by its path inside the folder: hashes of weights, responses, banks and diagnoses.
std::map<std::string, std::string> made_in(const Path& folder) {
  std::map<std::string, std::string> hashes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::string inside = std::filesystem::relative(entry.path(), folder).string();
    const bool is_result = name == "model.safetensors" || name == "optimizer.safetensors" ||
                           name == "responses.jsonl" || name == "summary.txt" || name == "states.json" ||
                           inside.starts_with("diagnoses/") || inside.starts_with("banks/");
    if (entry.is_regular_file() && is_result) hashes[inside] = sha256_file(entry.path());
  }
  return hashes;
}

TEST(Lab, InterruptedAndKilledEndsAsIfItHadRunThrough) {
  TemporaryDirectory directory;
  ASSERT_EQ(wait_for(start_lab(directory / "through")), 0) << read_file(directory / "through.log");
  // Two processes, interrupted politely or killed, at moments spread over the work; then left alone.
  for (const int milliseconds : {300, 900, 1700, 2600}) {
    const pid_t children[] = {start_lab(directory / "broken"), start_lab(directory / "broken")};
    usleep(static_cast<useconds_t>(milliseconds) * 1000);
    kill(children[0], SIGKILL);
    kill(children[1], milliseconds % 200 == 0 ? SIGKILL : SIGINT);
    for (const pid_t child : children) wait_for(child);
  }
  const pid_t children[] = {start_lab(directory / "broken"), start_lab(directory / "broken")};
  for (const pid_t child : children) ASSERT_EQ(wait_for(child), 0) << read_file(directory / "broken.log");
  const auto through = made_in(directory / "through"), broken = made_in(directory / "broken");
  EXPECT_GT(through.size(), 20u);
  EXPECT_EQ(through, broken);
  EXPECT_GT(std::filesystem::file_size(directory / "through/report.html"), 20000u);
}

}  // namespace
}  // namespace ropd
