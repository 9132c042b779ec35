// ropd branch as a user meets it: its exit code tells whether the run is done, and no other run is taken for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "support/tiny_world.h"
#include "system/shell.h"
#include "torture/disk.h"
#include "torture/traced_program.h"

namespace ropd {
namespace {

using test::run_ropd;
using testing::HasSubstr;

class BranchCommand : public testing::Test {
 protected:
  BranchCommand() {
    write_config("parent.yaml", "parent", {"train.iterations=2"});
    write_config("child.yaml", "runs/child", {"train.iterations=12"});
    std::filesystem::create_directory(world.path("runs"));
    EXPECT_EQ(run_ropd("train --quiet " + at("parent.yaml")).exit_code, 0);
  }
  void write_config(const std::string& file, const std::string& output,
                    std::vector<std::string> settings) const {
    settings.insert(settings.end(), {"checkpoint.keep=0", "curriculum.stages=[{source: current}]"});
    write_file_atomically(world.path(file), config_to_yaml(world.config(output, settings)));
  }
  std::string at(const std::string& name) const { return world.path(name).string(); }
  std::string command(const std::string& step) const {
    return "branch --quiet --threads 1 " + at("parent") + " " + step + " " + at("child.yaml");
  }

  const test::TinyWorld world;
};

TEST_F(BranchCommand, AStoppedOneIsNotDone) {
  // At one of its first calls that change files, however long it takes until there.
  const auto stopped =
      torture::run_traced({.command = {"/bin/sh", "-c", "exec " ROPD_PROGRAM " " + command("3")},
                           .folder = world.path("runs"),
                           .fault = {.at = 150, .kind = torture::Fault::Kind::signal, .signal = SIGTERM},
                           .before_call = {},
                           .on_change = {}});
  ASSERT_TRUE(stopped.met_fault);
  EXPECT_EQ(stopped.exit_code, 3) << stopped.err;
  EXPECT_EQ(run_ropd(command("3")).exit_code, 0) << "the same command goes on";
}

TEST_F(BranchCommand, APowerCutBringsNoRolloutsOfTheOtherRunBack) {
  torture::Disk disk(world.path("runs"));
  const auto end =
      torture::run_traced({.command = {"/bin/sh", "-c",
                                       "exec " ROPD_PROGRAM " " + command("3") +
                                           " train.iterations=2 'curriculum.stages=[{source: current, "
                                           "iterations: 1}, {source: initial}]'"},
                           .folder = world.path("runs"),
                           .fault = {},
                           .before_call = {},
                           .on_change = [&](const torture::Change& change) { disk.apply(change); }});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (uint64_t draw = 0; draw < 20; ++draw) {
    const torture::Tree left = disk.after_crash(torture::Loss::reordered, draw);
    EXPECT_TRUE(left.contains("child/rollouts/iter-0001.jsonl"));
    EXPECT_FALSE(left.contains("child/rollouts/iter-0002.jsonl")) << "sampled by weights that it never had";
  }
}

// A second one begins and ends while the first takes over what the other run has.
TEST_F(BranchCommand, TwoAtTheSameTimeLeaveOneWholeRun) {
  test::Outcome second;
  const auto first = torture::run_traced(
      {.command = {"/bin/sh", "-c", "exec " ROPD_PROGRAM " " + command("3")},
       .folder = world.path("runs"),
       .fault = {},
       .before_call =
           [&](uint64_t index) {
             if (index == 20) second = run_ropd(command("3"));
           },
       .on_change = {}});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_THAT(first.err, HasSubstr("child: cannot put the new folder in place"));
  EXPECT_EQ(run_ropd("verify " + at("runs/child")).exit_code, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(world.path("runs")), {}), 1) << "nothing is left";
}

TEST_F(BranchCommand, ANegativeStepIsNoLargeOne) {
  const auto outcome = run_ropd(command("-3"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("-3"));
  EXPECT_FALSE(std::filesystem::exists(world.path("runs") / "child"));
}

TEST_F(BranchCommand, AnotherRunIsNotTakenForIt) {
  const auto outcome = run_ropd(command("3") + " output=" + at("parent"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("parent: holds another run"));
}

}  // namespace
}  // namespace ropd
