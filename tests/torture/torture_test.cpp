// Facts about the instruments themselves: what the simulated disk may lose, that calls are seen, killed and
// failed where asked, that a bad way of writing would be noticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <signal.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "support/test_data.h"
#include "torture/damage.h"
#include "torture/traced_program.h"
#include "torture/trials.h"

namespace ropd::torture {
namespace {

using test::TemporaryDirectory;
using testing::HasSubstr;

TEST(OneClearLine, IsTheLastAndTheOnlyOneOfItsKind) {
  EXPECT_TRUE(ends_with_one_clear_line("ropd: x: cannot write\n"));
  EXPECT_TRUE(ends_with_one_clear_line("warning: slow\nropd: x: cannot write\n"));
  EXPECT_FALSE(ends_with_one_clear_line(""));
  EXPECT_FALSE(ends_with_one_clear_line("ropd: x: cannot write"));
  EXPECT_FALSE(ends_with_one_clear_line("ropd: x: cannot write\nropd: all is well\n"));
  EXPECT_FALSE(ends_with_one_clear_line("ropd: x: cannot write\nterminate called\n"));
  EXPECT_FALSE(ends_with_one_clear_line("ropd: internal error: x\n"));
}

class SimulatedDisk : public testing::Test {
 protected:
  SimulatedDisk() : disk(folder.path()) {}
  Change change(Change::Kind kind, const std::string& name, uint64_t inode, std::string bytes = "") const {
    return {.kind = kind, .path = folder.path() / name, .to = {}, .inode = inode, .bytes = std::move(bytes)};
  }
  void rename(const std::string& from, const std::string& to) {
    disk.apply(
        {.kind = Change::Kind::rename, .path = folder.path() / from, .to = folder.path() / to, .bytes = {}});
  }
  void sync_folder() { disk.apply(change(Change::Kind::sync, "", kFolder)); }
  void write_new_file(const std::string& name, uint64_t inode, const std::string& bytes) {
    disk.apply(change(Change::Kind::create, name, inode));
    disk.apply(change(Change::Kind::write, name, inode, bytes));
  }
  // The contents of a file after many draws; "absent" where it is not there.
  std::set<std::string> possible(Loss loss, const std::string& name) const {
    std::set<std::string> contents;
    for (uint64_t draw = 0; draw < 200; ++draw) {
      const Tree tree = disk.after_crash(loss, draw);
      const auto found = tree.find(name);
      contents.insert(found == tree.end() ? "absent" : found->second.content);
    }
    return contents;
  }

  const TemporaryDirectory folder;
  const uint64_t kFolder = [this] {
    struct stat status {};
    stat(folder.path().c_str(), &status);
    return status.st_ino;
  }();
  Disk disk;
};
using Contents = std::set<std::string>;

TEST_F(SimulatedDisk, LosesTheBytesOfAFileThatWasNotSynced) {
  write_new_file("a", 900, "text");
  EXPECT_EQ(possible(Loss::nothing, "a"), Contents{"text"});
  EXPECT_EQ(possible(Loss::bytes, "a"), Contents{""});
  EXPECT_EQ(possible(Loss::everything, "a"), Contents{"absent"});
  EXPECT_EQ(possible(Loss::reordered, "a"), (Contents{"", "absent"}));
  EXPECT_EQ(possible(Loss::torn, "a"), (Contents{"", "text", std::string(4, '\0')}));
}

TEST_F(SimulatedDisk, KeepsWhatWasSynced) {
  write_new_file("a", 900, "text");
  disk.apply(change(Change::Kind::sync, "a", 900));
  EXPECT_EQ(possible(Loss::torn, "a"), Contents{"text"});
  EXPECT_EQ(possible(Loss::everything, "a"), Contents{"absent"}) << "its folder was not synced";
  sync_folder();
  for (const Loss loss : kLosses) EXPECT_EQ(possible(loss, "a"), Contents{"text"}) << name_of(loss);
}

TEST_F(SimulatedDisk, ShowsThatARenameWithoutASyncCanLeaveAnEmptyFile) {
  write_new_file("a", 900, "old");
  disk.apply(change(Change::Kind::sync, "a", 900));
  sync_folder();
  write_new_file("b", 901, "new");
  rename("b", "a");
  EXPECT_EQ(possible(Loss::bytes, "a"), Contents{""});
  EXPECT_EQ(possible(Loss::reordered, "a"), (Contents{"", "old"}));
  disk.apply(change(Change::Kind::sync, "a", 901));
  EXPECT_EQ(possible(Loss::reordered, "a"), (Contents{"new", "old"}));
}

TEST_F(SimulatedDisk, MayDoALaterOperationAndNotAnEarlierOne) {
  write_new_file("a", 900, "");
  write_new_file("b", 901, "");
  bool saw_only_later = false;
  for (uint64_t draw = 0; draw < 50; ++draw) {
    const Tree tree = disk.after_crash(Loss::reordered, draw);
    saw_only_later |= tree.contains("b") && !tree.contains("a");
  }
  EXPECT_TRUE(saw_only_later);
}

class Traced : public testing::Test {
 protected:
  ProgramEnd shell(const std::string& line, Fault fault = {}) {
    return run_traced({.command = {"/bin/sh", "-c", "cd " + folder.path().string() + " && " + line},
                       .folder = folder.path(),
                       .fault = fault,
                       .before_call = {},
                       .on_change = [this](const Change& change) { changes.push_back(change); }});
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder / name); }
  const TemporaryDirectory folder;
  std::vector<Change> changes;
};

TEST_F(Traced, CallsOfAProgramAndItsChildrenAreSeenInOrder) {
  const ProgramEnd end = shell("echo text > a; mkdir b; mv a b/c; rm b/c");
  ASSERT_EQ(end.exit_code, 0) << end.err;
  std::vector<Change::Kind> kinds;
  for (const Change& change : changes)
    if (change.kind != Change::Kind::other) kinds.push_back(change.kind);
  EXPECT_THAT(kinds,
              testing::ElementsAre(Change::Kind::create, Change::Kind::write, Change::Kind::make_folder,
                                   Change::Kind::rename, Change::Kind::remove));
  EXPECT_EQ(changes[0].path.filename(), "a");
}

TEST_F(Traced, TheSimulatedDiskFollowsTheRealOne) {
  Disk disk(folder.path());
  ASSERT_EQ(shell("echo one > a; echo two >> a; cp a b; mkdir d; mv b d/b; ln -s a link; : > a; echo x > a")
                .exit_code,
            0);
  for (const Change& change : changes) disk.apply(change);
  EXPECT_EQ(disk.after_crash(Loss::nothing, 0), read_tree(folder.path()));
}

TEST_F(Traced, AKillComesBeforeTheCall) {
  const uint64_t all = shell("mkdir a && mkdir b && mkdir c").num_calls;
  ASSERT_EQ(all, 3u);
  for (const char* name : {"a", "b", "c"}) std::filesystem::remove(folder / name);
  const ProgramEnd end = shell("mkdir a && mkdir b && mkdir c", {.at = 2});
  EXPECT_TRUE(end.met_fault);
  EXPECT_TRUE(exists("a"));
  EXPECT_FALSE(exists("b"));
}

TEST_F(Traced, ACallFailsAsAskedAndDoesNothing) {
  const ProgramEnd end = shell("mkdir a", {.at = 1, .kind = Fault::Kind::error, .error_number = ENOSPC});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("No space left"));
  EXPECT_FALSE(exists("a"));
}

TEST_F(Traced, ASignalComesRightBeforeTheCall) {
  const ProgramEnd end = shell("trap 'mkdir caught' TERM; mkdir a; mkdir b",
                               {.at = 1, .kind = Fault::Kind::signal, .signal = SIGTERM});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(exists("caught"));
}

TEST(Damage, ChangesTheTreeAndIsTheSameAgain) {
  const Tree whole = {{"a.json", {TreeEntry::Kind::file, "{\"step\": 12}\n{\"step\": 13}\n"}},
                      {"b", {TreeEntry::Kind::file, std::string(5000, 'x')}}};
  size_t changed = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed), again(seed);
    Tree tree = whole, twin = whole;
    const std::string what = damage(tree, random);
    EXPECT_EQ(what, damage(twin, again));
    EXPECT_EQ(tree, twin);
    changed += tree != whole;
  }
  EXPECT_GT(changed, 85u) << "a file swapped with itself is whole";
}

}  // namespace
}  // namespace ropd::torture
