#include "io/read_speed.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

TEST(ReadSpeed, OfAShortFileIsMeasuredToItsEnd) {
  const test::TemporaryDirectory folder;
  write_file_atomically(folder / "file", std::string(100'001, 'x'));
  EXPECT_GT(measure_read_speed(folder / "file", 1e9), 1);
}

TEST(ReadSpeed, OfNoFileIsAnError) {
  const test::TemporaryDirectory folder;
  EXPECT_THROW(measure_read_speed(folder / "none", 1), Error);
}

}  // namespace
}  // namespace ropd::io
