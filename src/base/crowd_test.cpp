#include "base/crowd.h"

#include <gtest/gtest.h>

#include "support/test_data.h"

namespace ropd {
namespace {

TEST(Crowd, AddsWhatTasksWaited) {
  const test::TemporaryDirectory folder;
  for (const char* task : {"12", "13", "14"}) std::filesystem::create_directory(folder / task);
  write_file_atomically(folder / "12" / "schedstat", "900 20 7\n");
  write_file_atomically(folder / "13" / "schedstat", "0 300 7\n");
  EXPECT_EQ(waited_for_cores_ns(folder.path()), 320u) << "a task may have ended meanwhile";
  EXPECT_EQ(waited_for_cores_ns(folder / "nowhere"), 0u);
}

TEST(Crowd, LosesAShareOfItsCores) {
  CrowdWatch watch;
  for (const size_t threads : {0, 1, 64}) {
    const double share = watch.take_lost_share(threads);
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
  }
}

}  // namespace
}  // namespace ropd
