#include "tensor/float_storage.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "support/kill_at_system_call.h"
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

TEST(FloatStorage, KilledAtAnySystemCallLeavesNothingThatTheNextOneDoesNotRemove) {
  const test::TemporaryDirectory directory;
  int num_left = 0;
  test::kill_at_every_system_call([] {}, [&] { const FloatStorage storage(8, directory.path()); },
                                  [&](int call) {
                                    num_left += !std::filesystem::is_empty(directory.path());
                                    const FloatStorage storage(8, directory.path());
                                    EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << call;
                                  });
  EXPECT_GT(num_left, 0) << "no kill between the making of the file and the removal of its name";
}

TEST(FloatStorage, RefusesAFolderThatIsNotThere) {
  test::TemporaryDirectory directory;
  EXPECT_THROW(FloatStorage(8, directory / "absent"), Error);
}

// A limit on file sizes stands in for a full disk: space is asked for at once either way.
TEST(FloatStorage, WithoutRoomIsOneLineThatNamesTheFolder) {
  const test::TemporaryDirectory directory;
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small { 4096, limit.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message = "no error";
  try {
    const FloatStorage storage(10'000, directory.path());
  } catch (const Error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  EXPECT_NE(message.find(directory.path().string() + ": cannot reserve 40000 bytes for scratch: "),
            std::string::npos)
      << message;
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(FloatStorage, MayBeEmpty) { EXPECT_TRUE(FloatStorage(0).values().empty()); }

}  // namespace
}  // namespace ropd
