#include "tensor/buffer.h"

#include <gtest/gtest.h>

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

TEST(Buffer, MovesWithoutCopying) {
  Buffer first(5);
  const float* data = first.data();
  Buffer second = std::move(first);
  EXPECT_EQ(second.data(), data);
}

}  // namespace
}  // namespace ropd
