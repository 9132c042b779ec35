#include "base/large_allocations.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <vector>

namespace ropd {
namespace {

#if !defined(__SANITIZE_ADDRESS__)  // which keeps its own allocator and stops at a size it finds impossible
// The flags of the mapping that holds an address, as /proc/self/smaps gives them.
std::string mapping_flags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) is_inside = begin <= wanted && wanted < end;
    if (is_inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(LargeAllocations, AskForHugePages) {
  const std::vector<float> large(16 << 20);
  const std::string flags = mapping_flags(large.data() + large.size() / 2);
  if (flags.empty()) GTEST_SKIP() << "this system does not tell";
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data()) % (2 << 20), 0u);
}

TEST(LargeAllocations, TooLargeIsABadAllocationAndNotAnOverflow) {
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - (size_t{1} << 20), SIZE_MAX / 2})
    EXPECT_THROW(
        {
          volatile size_t hidden = bytes;  // or the compiler refuses it
          void* block = ::operator new(hidden);
          ::operator delete(block);
        },
        std::bad_alloc);
}
#endif

TEST(LargeAllocations, AlignedBlocksBeginACacheLine) {
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{5} << 20}) {
    void* const block = allocate_aligned(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::free(block);
  }
}

TEST(LargeAllocations, EveryBlockIsItsOwn) {
  std::vector<std::vector<char>> blocks;
  for (size_t bytes : {1, 100, 4 << 20, (4 << 20) + 1, 5 << 20})
    blocks.emplace_back(bytes, char(bytes % 113));
  for (const auto& block : blocks)
    for (size_t i = 0; i < block.size(); i += 4093) ASSERT_EQ(block[i], char(block.size() % 113));
}

}  // namespace
}  // namespace ropd
