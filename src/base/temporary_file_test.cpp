#include "base/temporary_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd {
namespace {

TEST(TemporaryFile, StaysAsLongAsItsOwnerHoldsIt) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "a";
  Path temporary;
  const int descriptor = create_temporary(path, temporary);
  EXPECT_THAT(temporary.string(), testing::StartsWith(path.string() + ".tmp-"));
  remove_stale_temporaries(path);
  EXPECT_TRUE(std::filesystem::exists(temporary));
  ::close(descriptor);
  write_file_atomically(directory / "b.tmp-1-0", "of another file");
  remove_stale_temporaries(path);
  EXPECT_FALSE(std::filesystem::exists(temporary));
  EXPECT_TRUE(std::filesystem::exists(directory / "b.tmp-1-0"));
}

TEST(TemporaryFile, NamesTheFileThatCannotBeMade) {
  Path temporary;
  EXPECT_THROW((void)create_temporary("/nowhere/a", temporary), Error);
}

}  // namespace
}  // namespace ropd
