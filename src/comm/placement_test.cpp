#include "comm/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/thread_world.h"

namespace ropd::comm {
namespace {

Place place(const std::string& host, std::vector<int> cores, uint64_t machine_cores) {
  return {.host = host, .cores = std::move(cores), .machine_cores = machine_cores};
}

TEST(Placement, EveryRankKnowsEverybody) {
  run_thread_world(3, [](World& world) {
    const auto places = exchange_places(world, own_place("rank " + std::to_string(world.rank())));
    ASSERT_EQ(places.size(), 3u);
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(places[rank].about, "rank " + std::to_string(rank));
      EXPECT_EQ(places[rank].host, host_name());
      EXPECT_GT(places[rank].memory_bytes, 0u);
      EXPECT_FALSE(places[rank].cores.empty());
    }
  });
}

TEST(Placement, CoresOfOneRankAreItsThreadsAndSharedOnesAreDivided) {
  const std::vector<Place> bound = {place("a", {0, 1, 2, 3}, 8), place("a", {4, 5, 6, 7}, 8)};
  EXPECT_EQ(threads_of(bound, 0), 4u);
  const std::vector<Place> unbound = {place("a", {0, 1, 2, 3}, 4), place("a", {0, 1, 2, 3}, 4),
                                      place("b", {0, 1, 2, 3}, 4)};
  EXPECT_EQ(threads_of(unbound, 1), 2u);
  EXPECT_EQ(threads_of(unbound, 2), 4u);
  EXPECT_EQ(ranks_beside(unbound, 0), 2u);
  const std::vector<Place> crowded = {place("a", {0}, 1), place("a", {0}, 1)};
  EXPECT_EQ(threads_of(crowded, 1), 1u);
}

TEST(Placement, RankPinnedToOneCoreOfManyIsToldWhatToPass) {
  EXPECT_THAT(launch_warnings({place("a", {3}, 64), place("a", {4}, 64)}),
              testing::ElementsAre(
                  testing::AllOf(testing::HasSubstr("rank 0 on a"), testing::HasSubstr("--bind-to none"))));
  EXPECT_TRUE(launch_warnings({place("a", {0}, 2), place("a", {1}, 2)}).empty()) << "a core for each";
  EXPECT_TRUE(launch_warnings({place("a", {0, 1}, 64)}).empty());
}

}  // namespace
}  // namespace ropd::comm
