// The laboratory as a user runs it, with few responses: to the end, and by two processes that are killed on the
// way. It is a study, so this is the test of `ropd study` under the same conditions. Processes are killed when
// they enter their n-th system call, so what is tested does not depend on how fast a machine is.
#include <gtest/gtest.h>
#include <ropd_source_directory.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "support/kill_at_system_call.h"
#include "support/test_data.h"
#include "system/shell.h"

namespace ropd {
namespace {

using test::TemporaryDirectory;

// Takes this process's place.
void become_lab(const Path& out) {
  const std::string path = out.string();
  if (!freopen((path + ".log").c_str(), "a", stdout) || !freopen((path + ".log").c_str(), "a", stderr))
    _exit(126);
  execl(ROPD_PROGRAM, "ropd", "lab", "--fast", "--responses", "32", "--threads", "1", "--models",
        ROPD_SOURCE_DIR "/lab/models", "--out", path.c_str(), nullptr);
  _exit(127);
}

pid_t start_lab(const Path& out) {
  const pid_t child = fork();
  if (child == 0) become_lab(out);
  return child;
}

// A process that runs the laboratory until its n-th system call. Ends with 0 when it was killed there, with 1
// when the laboratory came to its end before.
pid_t start_lab_to_be_killed(const Path& out, int call) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(test::run_until_system_call([&] { become_lab(out); }, call) ? 0 : 1);
    } catch (const std::exception&) {
      _exit(2);
    }
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Where the two folders' files may differ: times, processes, who held a claim, what a machine said of itself,
// what an interruption left to be read (metrics.discarded.jsonl). A MANIFEST hashes its checkpoint's copy of the
// metrics, which holds times; all files it lists are compared.
bool tells_times(const std::string& inside, const std::string& name) {
  for (const char* file : {"environment.json", "history.jsonl", "inputs.json", "progress.json",
                           "MANIFEST.json", "metrics.discarded.jsonl"})
    if (name == file) return true;
  return inside.starts_with("times/") || inside.starts_with("claims/") ||
         name.find("tfevents") != std::string::npos || name.find(".graph.json") != std::string::npos ||
         name.ends_with(".lock") || name.ends_with(".html") || inside.starts_with("report_files/");
}

std::string without_path(std::string text, const std::string& path) {
  for (size_t at = text.find(path); at != std::string::npos; at = text.find(path, at))
    text.replace(at, path.size(), "OUT");
  return text;
}

// Metrics without the keys that tell times, speeds and memory.
std::string without_times(const std::string& lines) {
  std::string kept;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin);
    Json line = parse_json(lines.substr(begin, end - begin), "metrics");
    for (auto item = line.begin(); item != line.end();)
      item = item.key().find("timing") != std::string::npos || item.key().find("perf") != std::string::npos ||
                     item.key().find("time") != std::string::npos ||
                     item.key().find("memory") != std::string::npos ||
                     item.key().find("second") != std::string::npos
                 ? line.erase(item)
                 : std::next(item);
    kept += line.dump() + "\n";
    begin = end == std::string::npos ? lines.size() : end + 1;
  }
  return kept;
}

// Sealed records name paths, so that their checksums differ where folders do.
std::string without_checksum(std::string text) {
  const std::string begin = "\"checksum\": \"";
  for (size_t at; (at = text.find(begin)) != std::string::npos;)
    text.erase(at, text.find('"', at + begin.size()) + 1 - at);
  return text;
}

// All that a study made, by its path inside the folder.
std::map<std::string, std::string> made_in(const Path& folder) {
  std::map<std::string, std::string> hashes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::string inside = std::filesystem::relative(entry.path(), folder).string();
    if (!entry.is_regular_file() || tells_times(inside, name)) continue;
    std::string content = without_checksum(without_path(read_file(entry.path()), folder.string()));
    if (name == "metrics.jsonl") content = without_times(content);
    hashes[inside] = sha256(content);
  }
  return hashes;
}

// Twice so many kills; ROPD_LAB_KILLS=15 makes thirty.
int num_rounds() {
  const char* rounds = std::getenv("ROPD_LAB_KILLS");
  return rounds ? std::atoi(rounds) : 2;
}

TEST(Lab, KilledWhileTwoProcessesWorkOnItEndsWithTheSameBytes) {
  TemporaryDirectory directory;
  ASSERT_EQ(wait_for(start_lab(directory / "through")), 0) << read_file(directory / "through.log");
  int num_killed = 0;
  for (int round = 0; round < num_rounds(); ++round) {
    pid_t children[2];
    for (int i = 0; i < 2; ++i) {
      const auto draw = random_bits(
          20261117, Purpose::test, {.key = static_cast<uint64_t>(round), .row = static_cast<uint32_t>(i)})[0];
      children[i] = start_lab_to_be_killed(directory / "broken", 300 + static_cast<int>(draw % 4000));
    }
    for (const pid_t child : children) {
      const int code = wait_for(child);
      ASSERT_LE(code, 1) << read_file(directory / "broken.log");
      num_killed += code == 0;
    }
  }
  EXPECT_GE(num_killed, num_rounds()) << "the laboratory ends before it is killed";
  const pid_t children[] = {start_lab(directory / "broken"), start_lab(directory / "broken")};
  for (const pid_t child : children) ASSERT_EQ(wait_for(child), 0) << read_file(directory / "broken.log");
  std::printf("killed %d times\n", num_killed);
  const auto through = made_in(directory / "through"), broken = made_in(directory / "broken");
  EXPECT_GT(through.size(), 100u);
  for (const auto& [name, hash] : through)
    EXPECT_EQ(broken.contains(name) ? broken.at(name) : "absent", hash) << name;
  for (const auto& [name, hash] : broken) EXPECT_TRUE(through.contains(name)) << name << " is there too";
  EXPECT_GT(std::filesystem::file_size(directory / "through/report.html"), 20000u);
}

// Its folder is that of a study, whose results are known by what they are made from.
TEST(Lab, OtherOptionsInTheSameFolderGiveTheirOwnTable) {
  const TemporaryDirectory directory;
  const auto table_of = [&](const std::string& options) {
    const auto outcome = test::run_ropd("lab --fast --quiet --models " ROPD_SOURCE_DIR "/lab/models " +
                                        options + " --out " + (directory / "lab").string());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return read_file(directory / "lab/summary.txt");
  };
  const std::string first = table_of("--responses 8");
  EXPECT_NE(table_of("--responses 16"), first);
  EXPECT_EQ(table_of("--responses 8"), first) << "and back again";
}

}  // namespace
}  // namespace ropd
