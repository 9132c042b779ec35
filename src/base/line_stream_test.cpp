#include "base/line_stream.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/standard_streams.h"
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

}  // namespace
}  // namespace ropd
