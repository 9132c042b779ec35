#include "comm/probe.h"

#include <gtest/gtest.h>

#include "comm/thread_world.h"

namespace ropd::comm {
namespace {

TEST(Probe, MeasuresEveryOtherRankAndACopy) {
  run_thread_world(3, [](World& world) {
    const auto links = probe_links(world, 1 << 16);
    ASSERT_EQ(links.size(), world.rank() == 0 ? 3u : 0u);
    for (size_t rank = 0; rank < links.size(); ++rank) {
      EXPECT_GT(links[rank].bytes_per_second, 0);
      EXPECT_EQ(links[rank].round_trip_seconds > 0, rank > 0);
      EXPECT_LT(std::abs(links[rank].clock_offset_seconds), 3600) << "the same clock";
    }
  });
}

}  // namespace
}  // namespace ropd::comm
