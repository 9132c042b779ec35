#include "tensor/float_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd {
namespace {

void expect_zeroed_and_writable(FloatStorage storage) {
  ASSERT_EQ(storage.size(), 100003u);
  EXPECT_TRUE(
      std::all_of(storage.values().begin(), storage.values().end(), [](float value) { return value == 0; }));
  storage.values().back() = 2.5f;
  FloatStorage moved(std::move(storage));
  EXPECT_EQ(moved.values().back(), 2.5f);
  EXPECT_EQ(storage.size(), 0u);
}

TEST(FloatStorage, IsZeroedInMemory) { expect_zeroed_and_writable(FloatStorage(100003)); }

TEST(FloatStorage, IsZeroedInAFileThatLeavesNothingBehind) {
  test::TemporaryDirectory directory;
  FloatStorage storage(100003, directory.path());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  expect_zeroed_and_writable(std::move(storage));
}

TEST(FloatStorage, RefusesAFolderThatIsNotThere) {
  test::TemporaryDirectory directory;
  EXPECT_THROW(FloatStorage(8, directory / "absent"), Error);
}

TEST(FloatStorage, MayBeEmpty) { EXPECT_TRUE(FloatStorage(0).values().empty()); }

}  // namespace
}  // namespace ropd
