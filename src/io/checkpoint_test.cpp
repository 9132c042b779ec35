#include "io/checkpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "support/test_data.h"

// The system calls a save consists of, counted: the child of a test dies in front of the n-th one. A
// program's own definition takes the place of the C library's, also for calls out of shared libraries.
namespace {
long calls_until_kill = -1;  // -1 = count nothing
long calls_seen = 0;
// Names that a power cut may bring back, and removals that it may keep nevertheless.
long renames_not_synced = 0, removals_behind_them = 0;
void count_call() {
  if (calls_until_kill < 0) return;
  if (++calls_seen > calls_until_kill) kill(getpid(), SIGKILL);
}
}  // namespace
extern "C" {
// A killed process does not lose what the system has, so only the order of the calls matters here; without
// the disk's latency the tests of this program run in a tenth of the time.
int fsync(int) {
  count_call();
  renames_not_synced = 0;
  return 0;
}
int fdatasync(int) {
  count_call();
  return 0;
}
int rename(const char* from, const char* to) noexcept {
  count_call();
  ++renames_not_synced;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  count_call();
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
int unlinkat(int folder, const char* name, int flags) noexcept {
  count_call();
  removals_behind_them += renames_not_synced > 0;
  return static_cast<int>(syscall(SYS_unlinkat, folder, name, flags));
}
ssize_t write(int descriptor, const void* bytes, size_t count) {
  count_call();
  return syscall(SYS_write, descriptor, bytes, count);
}
}

namespace ropd::io {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

void fill_with(const Path& folder, const std::string& content) {
  fs::create_directory(folder / "model");
  write_file_atomically(folder / "model" / "model.safetensors", "weights " + content);
  write_file_atomically(folder / "optimizer.safetensors", "optimizer " + content);
  write_file_atomically(folder / "state.json", "{\"content\": \"" + content + "\"}");
}

auto content(const std::string& text) {
  return [text](const Path& folder) { fill_with(folder, text); };
}

bool holds(const Path& checkpoint, const std::string& text) {
  return read_file(checkpoint / "model" / "model.safetensors") == "weights " + text &&
         read_file(checkpoint / "optimizer.safetensors") == "optimizer " + text;
}

std::vector<uint64_t> steps_in(const Path& directory) {
  std::vector<uint64_t> steps;
  for (const auto& entry : list_checkpoints(directory)) steps.push_back(entry.step);
  return steps;
}

std::string error_of(const Path& checkpoint) {
  try {
    verify_checkpoint(checkpoint);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void flip_byte(const Path& path, size_t index) {
  std::string bytes = read_file(path);
  bytes.at(index) = static_cast<char>(bytes.at(index) ^ 1);
  write_file_atomically(path, bytes);
}

TEST(CheckpointStore, SavesVerifiesAndPointsToTheNewest) {
  test::TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const Path path = store.save(4, {.keep = 3}, content("four"));
  EXPECT_EQ(path.filename(), "step-00004");
  EXPECT_EQ(verify_checkpoint(path), 4u);
  EXPECT_TRUE(holds(path, "four"));
  EXPECT_EQ(read_file(directory / "checkpoints/LATEST"), "step-00004\n");
  EXPECT_EQ(newest_valid_checkpoint(store.directory())->step, 4u);
}

TEST(CheckpointStore, KeepsTheNewestAndRemovesOlderOnes) {
  test::TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  for (uint64_t step : {4u, 8u, 12u, 16u}) store.save(step, {.keep = 2}, content(std::to_string(step)));
  EXPECT_EQ(steps_in(directory.path()), (std::vector<uint64_t>{12, 16}));
  store.save(20, {.keep = 0}, content("20"));
  EXPECT_EQ(steps_in(directory.path()), (std::vector<uint64_t>{12, 16, 20}));
}

TEST(CheckpointStore, ANameIsGoneForGoodBeforeTheFilesAre) {
  test::TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  removals_behind_them = 0;
  for (uint64_t step : {4u, 8u, 12u}) store.save(step, {.keep = 1}, content(std::to_string(step)));
  EXPECT_EQ(removals_behind_them, 0);
}

TEST(CheckpointStore, NeverRemovesTheStepsToKeep) {
  test::TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  for (uint64_t step : {4u, 8u, 12u, 16u})
    store.save(step, {.keep = 1, .keep_steps = {8}}, content(std::to_string(step)));
  EXPECT_EQ(steps_in(directory.path()), (std::vector<uint64_t>{8, 16}));
}

TEST(CheckpointStore, AFailedFillLeavesThePreviousCheckpointAlone) {
  test::TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  store.save(4, {.keep = 1}, content("four"));
  EXPECT_THROW(store.save(8, {.keep = 1},
                          [](const Path& folder) {
                            write_file_atomically(folder / "half", "x");
                            fail("disk full");
                          }),
               Error);
  EXPECT_EQ(steps_in(directory.path()), (std::vector<uint64_t>{4}));
  EXPECT_EQ(verify_checkpoint(directory / "step-00004"), 4u);
  EXPECT_EQ(read_file(directory / "LATEST"), "step-00004\n");
}

TEST(CheckpointStore, ReplacesACheckpointOfTheSameStep) {
  test::TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  store.save(4, {.keep = 3}, content("old"));
  store.save(4, {.keep = 3}, content("new"));
  EXPECT_TRUE(holds(directory / "step-00004", "new"));
  EXPECT_EQ(error_of(directory / "step-00004"), "no error");
}

TEST(VerifyCheckpoint, NamesTheFileWithAFlippedByte) {
  for (const char* name : {"model/model.safetensors", "optimizer.safetensors", "state.json"}) {
    test::TemporaryDirectory directory;
    const Path path = CheckpointStore(directory.path()).save(4, {.keep = 3}, content("four"));
    flip_byte(path / name, 3);
    EXPECT_THAT(error_of(path), HasSubstr(std::string(name) + ": SHA-256 differs"));
  }
}

TEST(VerifyCheckpoint, FindsEveryFlippedByteOfTheManifest) {
  test::TemporaryDirectory directory;
  const Path path = CheckpointStore(directory.path()).save(4, {.keep = 3}, content("four"));
  const std::string manifest = read_file(path / "MANIFEST.json");
  for (size_t i = 0; i < manifest.size(); ++i) {
    if (manifest[i] == '\n' || manifest[i] == ' ') continue;  // white space carries nothing
    flip_byte(path / "MANIFEST.json", i);
    EXPECT_NE(error_of(path), "no error") << i;
    flip_byte(path / "MANIFEST.json", i);
  }
  EXPECT_EQ(error_of(path), "no error");
}

TEST(VerifyCheckpoint, FindsMissingAndShortFiles) {
  test::TemporaryDirectory directory;
  const Path path = CheckpointStore(directory.path()).save(4, {.keep = 3}, content("four"));
  truncate_file(path / "optimizer.safetensors", 2);
  EXPECT_THAT(error_of(path), HasSubstr("optimizer.safetensors: has 2 bytes"));
  fs::remove(path / "optimizer.safetensors");
  EXPECT_THAT(error_of(path), HasSubstr("optimizer.safetensors: missing"));
  fs::remove(path / "MANIFEST.json");
  EXPECT_THAT(error_of(path), HasSubstr("no MANIFEST.json"));
}

TEST(VerifyCheckpoint, RefusesPathsThatLeaveTheCheckpoint) {
  test::TemporaryDirectory directory;
  const std::string body = R"({"files":[{"bytes":0,"path":"../x","sha256":""}],"format":1,"step":4})";
  write_file_atomically(directory / "MANIFEST.json",
                        body.substr(0, body.size() - 1) + ",\"sha256\":\"" + sha256(body) + "\"}");
  EXPECT_THAT(error_of(directory.path()), HasSubstr("outside the checkpoint"));
}

TEST(NewestValidCheckpoint, StepsBackOverADamagedOne) {
  test::TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  store.save(4, {.keep = 0}, content("four"));
  store.save(8, {.keep = 0}, content("eight"));
  flip_byte(directory / "step-00008/state.json", 0);
  EXPECT_EQ(newest_valid_checkpoint(directory.path())->step, 4u);
}

std::string error_of_choice(const Path& directory) {
  try {
    (void)newest_valid_checkpoint(directory);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(NewestValidCheckpoint, NoneThatVerifiesIsNotTheSameAsNone) {
  test::TemporaryDirectory directory;
  EXPECT_FALSE(newest_valid_checkpoint(directory / "absent").has_value());
  CheckpointStore store(directory / "c");
  EXPECT_FALSE(newest_valid_checkpoint(store.directory()).has_value());
  store.save(4, {.keep = 0}, content("four"));
  store.save(8, {.keep = 0}, content("eight"));
  flip_byte(directory / "c/step-00008/state.json", 0);
  fs::remove(directory / "c/step-00004/optimizer.safetensors");
  EXPECT_THAT(error_of_choice(store.directory()),
              testing::AllOf(HasSubstr("step-00008/state.json: SHA-256 differs"),
                             HasSubstr("step-00004/optimizer.safetensors: missing"),
                             HasSubstr("`ropd resume " + directory.path().string() + " --start-over`")));
  fs::remove_all(directory / "c/step-00004");
  fs::remove_all(directory / "c/step-00008");
  EXPECT_THAT(error_of_choice(store.directory()), HasSubstr("LATEST: names a checkpoint"));
}

TEST(NewestValidCheckpoint, AModelCardCondemnsNothing) {
  test::TemporaryDirectory directory;
  CheckpointStore(directory.path()).save(4, {.keep = 0}, [](const Path& folder) {
    fill_with(folder, "four");
    write_file_atomically(folder / "model/README.md", "# card");
  });
  flip_byte(directory / "step-00004/model/README.md", 0);
  EXPECT_EQ(newest_valid_checkpoint(directory.path())->step, 4u);
  const auto check = check_checkpoint(directory / "step-00004");
  EXPECT_TRUE(check.damages.empty());
  EXPECT_EQ(check.blemishes.size(), 1u) << "but `ropd verify` tells of it";
}

// A link to itself stands for whatever keeps a file from being read at the moment.
TEST(NewestValidCheckpoint, DoesNotGoBackWhereTheNewestCannotBeReadNow) {
  test::TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  store.save(4, {.keep = 0}, content("four"));
  store.save(8, {.keep = 0}, content("eight"));
  fs::remove(directory / "step-00008/state.json");
  fs::create_symlink("state.json", directory / "step-00008/state.json");
  EXPECT_THAT(error_of_choice(directory.path()), HasSubstr("step-00008/state.json: cannot look at it"));
}

// Runs save() in a child that is killed in front of its n-th system call; false when it came to its end.
bool save_and_die(const Path& directory, uint64_t step, const std::string& text, long calls) {
  const pid_t child = fork();
  if (child == 0) {
    calls_until_kill = calls;
    CheckpointStore(directory).save(step, {.keep = 1}, content(text));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

// At every point of the save of `step`, the old checkpoint 4 or the new one is whole, and saving again works.
void kill_everywhere(uint64_t step) {
  int old_seen = 0, new_seen = 0;
  for (long calls = 0;; ++calls) {
    test::TemporaryDirectory directory;
    CheckpointStore(directory.path()).save(4, {.keep = 1}, content("old"));
    const bool was_killed = save_and_die(directory.path(), step, "new", calls);
    const auto newest = newest_valid_checkpoint(directory.path());
    ASSERT_TRUE(newest.has_value()) << "killed before call " << calls;
    const bool is_new = holds(newest->path, "new");
    ASSERT_TRUE(is_new || (newest->step == 4 && holds(newest->path, "old"))) << calls;
    ++(is_new ? new_seen : old_seen);
    CheckpointStore store(directory.path());
    store.settle(newest->step, {.keep = 1});
    EXPECT_EQ(steps_in(directory.path()), std::vector<uint64_t>{newest->step}) << calls;
    EXPECT_EQ(read_file(directory / "LATEST"), newest->path.filename().string() + "\n") << calls;
    store.save(step + 4, {.keep = 1}, content("after"));
    EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()), 2)
        << calls;  // it, LATEST
    if (!was_killed) {
      EXPECT_TRUE(is_new);
      break;
    }
    ASSERT_LT(calls, 500);
  }
  EXPECT_GT(old_seen, 10);
  EXPECT_GT(new_seen, 3);
}

TEST(CheckpointStore, KilledAtAnySystemCallLeavesTheOldOrTheNewCheckpoint) { kill_everywhere(8); }
TEST(CheckpointStore, KilledWhileReplacingAStepLeavesTheOldOrTheNewContent) { kill_everywhere(4); }

}  // namespace
}  // namespace ropd::io
