#include "io/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_of.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, IsGoneUnlessItWasMoved) {
  const test::TemporaryDirectory directory;
  { write_file_atomically(TemporaryFolder(directory / "a").path() / "file", "x"); }
  EXPECT_TRUE(fs::is_empty(directory.path()));
  {
    TemporaryFolder folder(directory / "a");
    write_file_atomically(folder.path() / "file", "x");
    folder.move_to(directory / "a");
  }
  EXPECT_EQ(read_file(directory / "a" / "file"), "x");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 1);
}

TEST(TemporaryFolder, AFolderInsideOfItMayBeWhatIsMoved) {
  const test::TemporaryDirectory directory;
  {
    const TemporaryFolder folder(directory / "a");
    fs::create_directory(folder.path() / "made");
    write_file_atomically(folder.path() / "made" / "file", "x");
    folder.move_to(directory / "a", folder.path() / "made");
  }
  EXPECT_EQ(read_file(directory / "a" / "file"), "x");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 1);
}

TEST(TemporaryFolder, ReplacesNothingButAnEmptyFolder) {
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "a");
  write_file_atomically(directory / "a" / "file", "before");
  TemporaryFolder folder(directory / "a");
  EXPECT_THAT(test::error_of([&] { folder.move_to(directory / "a"); }),
              testing::HasSubstr("a: cannot put the new folder in place"));
  EXPECT_EQ(read_file(directory / "a" / "file"), "before");
  fs::remove(directory / "a" / "file");
  folder.move_to(directory / "a");
  EXPECT_TRUE(fs::is_empty(directory / "a"));
}

TEST(TemporaryFolder, RemovesThoseOfDeadOwnersAndNoOther) {
  const test::TemporaryDirectory directory;
  for (const char* name : {"a.tmp-1", "a.tmp-x", "b.tmp-1"}) {
    fs::create_directory(directory / name);
    write_file_atomically(directory / name / "file", "x");
  }
  const TemporaryFolder other_place(directory / "c");
  const TemporaryFolder folder(directory / "a");
  EXPECT_FALSE(fs::exists(directory / "a.tmp-1"));
  EXPECT_TRUE(fs::exists(directory / "a.tmp-x" / "file")) << "not a name of ours";
  EXPECT_TRUE(fs::exists(directory / "b.tmp-1" / "file")) << "of another place";
  fs::rename(folder.path(), directory / "a.tmp-2");  // held by its owner, whatever its name
  {
    const TemporaryFolder next(directory / "a");
    EXPECT_TRUE(fs::exists(directory / "a.tmp-2"));
  }
  fs::rename(directory / "a.tmp-2", folder.path());
}

}  // namespace
}  // namespace ropd::io
