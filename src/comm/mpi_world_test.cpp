#include "comm/mpi_world.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "support/launcher.h"
#include "support/world_checks.h"

namespace ropd::comm {
namespace {

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

int run_here(int ranks, const std::string& test) {
  const std::string command = test::mpirun(ranks) + this_program() +
                              " --gtest_also_run_disabled_tests --gtest_filter='" + test +
                              "' > /dev/null 2> /dev/null";
  return std::system(command.c_str());
}

class MpiWorlds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, MpiWorlds, testing::Values(1, 2, 3, 4));

TEST_P(MpiWorlds, DoWhatEveryWorldDoes) {
  if (!test::has_mpirun()) GTEST_SKIP() << "no mpirun";
  EXPECT_EQ(run_here(GetParam(), "UnderMpirun.DISABLED_WorldDoesWhatEveryWorldDoes"), 0);
}

TEST(MpiWorld, FailureOfOneRankEndsAll) {
  if (!test::has_mpirun()) GTEST_SKIP() << "no mpirun";
  EXPECT_NE(run_here(2, "UnderMpirun.DISABLED_OneRankAborts"), 0);
}

TEST(MpiWorld, WithoutALauncherIsAWorldOfOne) {
  ASSERT_FALSE(is_started_by_launcher());
  auto world = join_world();
  EXPECT_EQ(world->size(), 1);
  leave_world(std::move(world));
}

// --- what mpirun runs ---

TEST(UnderMpirun, DISABLED_WorldDoesWhatEveryWorldDoes) {
  ASSERT_TRUE(is_started_by_launcher());
  auto world = join_world();
  test::check_world(*world);
  leave_world(std::move(world));
}

TEST(UnderMpirun, DISABLED_OneRankAborts) {
  auto world = join_world();
  if (world->rank() == 1) world->abort(1);
  (void)world->receive(1, Tag::state);  // never comes
}

}  // namespace
}  // namespace ropd::comm
