#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/threads.h"

namespace ropd {
namespace {

TEST(Buffer, IsAlignedAndKeepsItsMemoryWhenShrinking) {
  Buffer buffer(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  buffer.fill(3);
  const float* before = buffer.data();
  buffer.resize(10);
  EXPECT_EQ(buffer.data(), before);
  EXPECT_EQ(buffer.size(), 10u);
  EXPECT_EQ(buffer[9], 3.0f);
  buffer.resize(100);
  EXPECT_EQ(buffer.data(), before);
}

TEST(Buffer, IsFilledToItsEndByAnyNumberOfThreads) {
  const size_t before = num_threads();
  for (const size_t threads : {1, 3, 16}) {
    set_num_threads(threads);
    for (const size_t size : {0u, 1u, 65537u, 1000003u}) {
      Buffer buffer(size);
      buffer.fill(2);
      EXPECT_TRUE(std::ranges::all_of(buffer.span(), [](float value) { return value == 2; })) << size;
    }
  }
  set_num_threads(before);
}

TEST(Buffer, MovesWithoutCopying) {
  Buffer first(5);
  const float* data = first.data();
  Buffer second = std::move(first);
  EXPECT_EQ(second.data(), data);
}

}  // namespace
}  // namespace ropd
