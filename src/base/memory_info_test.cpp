#include "base/memory_info.h"

#include <gtest/gtest.h>

namespace ropd {
namespace {

TEST(MemoryInfo, ReadsTotalAndAvailable) {
  const auto info = parse_meminfo("MemTotal:       1000 kB\nMemFree:  5 kB\nMemAvailable:    600 kB\n");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->total_bytes, 1000u * 1024);
  EXPECT_EQ(info->available_bytes, 600u * 1024);
}

TEST(MemoryInfo, ReportsMissingFields) {
  EXPECT_FALSE(parse_meminfo(""));
  EXPECT_FALSE(parse_meminfo("MemTotal: 1000 kB\n"));
  EXPECT_FALSE(parse_meminfo("MemTotal: many kB\nMemAvailable: 3 kB\n"));
  EXPECT_FALSE(parse_meminfo("XMemTotal: 1000 kB\nMemAvailable: 3 kB\n"));
}

TEST(MemoryInfo, KeepsAReserve) {
  constexpr uint64_t kGib = uint64_t{1} << 30;
  EXPECT_EQ(usable_bytes({100 * kGib, 50 * kGib}), 45 * kGib);
  EXPECT_EQ(usable_bytes({kGib, kGib}), kGib - kGib / 4);
  EXPECT_EQ(usable_bytes({kGib, kGib / 8}), 0u);
}

TEST(MemoryInfo, FindsThisMachinesMemory) {
  const MemoryInfo info = read_memory_info();
  EXPECT_GT(info.available_bytes, 0u);
  EXPECT_LE(info.available_bytes, info.total_bytes);
}

TEST(MemoryInfo, PeakIsInBytes) { EXPECT_GT(peak_memory_bytes(), 1u << 20); }

}  // namespace
}  // namespace ropd
