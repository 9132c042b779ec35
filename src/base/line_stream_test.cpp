#include "base/line_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/standard_streams.h"
#include "base/stop.h"
#include "base/waiting.h"
#include "support/test_data.h"

namespace ropd {
namespace {

TEST(LineStream, GoesToPipesAndDevicesNotToFilesThatStay) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "file", "x");
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(is_stream(kStandardOutput));
  EXPECT_TRUE(is_stream("/dev/null"));
  EXPECT_TRUE(is_stream(directory / "pipe"));
  EXPECT_FALSE(is_stream(directory / "file"));
  EXPECT_FALSE(is_stream(directory / "absent"));
  EXPECT_FALSE(is_stream(directory.path()));
}

TEST(LineStream, EveryLineIsOutWhenItIsWritten) {
  const test::TemporaryDirectory directory;
  LineStream stream(directory / "lines");
  stream.write("one");
  EXPECT_EQ(read_file(directory / "lines"), "one\n");
  stream.write("two");
  EXPECT_EQ(read_file(directory / "lines"), "one\ntwo\n");
}

TEST(LineStream, AFullDeviceIsNamed) {
  LineStream stream("/dev/full");
  try {
    stream.write("x");
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("/dev/full: cannot write: "));
  }
  EXPECT_THROW(LineStream("/absent/folder/file"), Error);
}

TEST(LineStream, APipeThatNobodyReadsIsRefusedInsteadOfWaitedFor) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto refused = [&](auto open) -> std::string {
    try {
      open();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string expected = path.string() + ": is a pipe that nobody reads; start its reader first";
  EXPECT_EQ(refused([&] { LineStream stream(path); }), expected);
  EXPECT_EQ(refused([&] { AtomicFile file(path); }), expected);
}

TEST(LineStream, WaitsForASlowReaderAndWritesAllOfIt) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  const std::string line(1'000'000, 'x');  // more than a pipe holds
  std::thread writer([&] { LineStream(path).write(line); });
  ASSERT_EQ(::fcntl(reader, F_SETFL, 0), 0);
  std::string seen;
  char block[4096];
  while (seen.size() < line.size() + 1) {
    const ssize_t got = ::read(reader, block, sizeof block);
    // 0: the writer has not opened it yet
    if (got > 0) seen.append(block, static_cast<size_t>(got));
  }
  writer.join();
  ::close(reader);
  EXPECT_EQ(seen, line + "\n");
}

TEST(LineStream, AReaderWhoTakesNothingDoesNotKeepAStoppedProgram) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  LineStream stream(path);
  request_stop();
  EXPECT_THROW(stream.write(std::string(1'000'000, 'x')), Stopped);
  clear_stop_request();
  ::close(reader);
}

}  // namespace
}  // namespace ropd
