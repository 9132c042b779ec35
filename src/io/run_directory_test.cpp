#include "io/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "support/error_of.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(RunDirectory, WritesConfigAndEnvironmentFirst) {
  test::TemporaryDirectory directory;
  const RunDirectory run = RunDirectory::create(directory / "a/b", "seed: 1\n", "{}");
  EXPECT_EQ(read_file(run.config()), "seed: 1\n");
  EXPECT_EQ(read_file(run.environment()), "{}");
  EXPECT_TRUE(std::filesystem::is_directory(run.checkpoints()));
  EXPECT_EQ(run.rollouts(7).filename(), "iter-0007.jsonl");
  EXPECT_EQ(run.recent_bank(40).filename(), "recent-00040.jsonl");
}

TEST(RunDirectory, RefusesAFolderThatHoldsARunAndSaysHowToResume) {
  test::TemporaryDirectory directory;
  { RunDirectory::create(directory / "run", "seed: 1\n", "{}"); }
  EXPECT_THAT(error_of([&] { RunDirectory::create(directory / "run", "seed: 1\n", "{}"); }),
              HasSubstr("ropd resume"));
  EXPECT_EQ(read_file(directory / "run/config.yaml"), "seed: 1\n");
}

TEST(RunDirectory, RefusesAFolderWithOtherFiles) {
  test::TemporaryDirectory directory;
  write_file_atomically(directory / "thesis.tex", "x");
  EXPECT_THAT(error_of([&] { RunDirectory::create(directory.path(), "", ""); }),
              HasSubstr("not empty (thesis.tex)"));
}

TEST(RunDirectory, BeginsAgainWhereAStartWasCutShort) {
  test::TemporaryDirectory directory;
  write_file_atomically(directory / "environment.json", "{}");
  EXPECT_EQ(error_of([&] { RunDirectory::create(directory.path(), "seed: 2\n", "{}"); }), "no error");
}

TEST(RunDirectory, OpensOnlyARun) {
  test::TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] { RunDirectory::open(directory / "none"); }), HasSubstr("not a folder"));
  EXPECT_THAT(error_of([&] { RunDirectory::open(directory.path()); }), HasSubstr("no config.yaml"));
  { RunDirectory::create(directory / "run", "", ""); }
  EXPECT_EQ(error_of([&] { RunDirectory::open(directory / "run"); }), "no error");
}

TEST(RunDirectory, IsUsedByOneProcessAtATime) {
  test::TemporaryDirectory directory;
  const RunDirectory run = RunDirectory::create(directory / "run", "", "");
  EXPECT_THAT(error_of([&] { RunDirectory::open(directory / "run"); }), HasSubstr("another process"));
}

TEST(Environment, NamesMachineThreadsAndCommand) {
  const Json environment = parse_json(describe_environment("ropd train \"a\".yaml"), "environment");
  EXPECT_EQ(environment["command_line"], "ropd train \"a\".yaml");
  for (const char* name : {"started", "git_revision", "compiler", "cpu", "cores", "threads", "memory"})
    EXPECT_TRUE(environment.contains(name)) << name;
}

TEST(RequireFreeSpace, FailsWithTheNumbers) {
  test::TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { require_free_space(directory.path(), 1, "nothing"); }), "no error");
  EXPECT_THAT(error_of([&] { require_free_space(directory.path(), uint64_t{1} << 60, "4 checkpoints"); }),
              HasSubstr("4 checkpoints"));
}

}  // namespace
}  // namespace ropd::io
