#include "io/durable_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "support/kill_at_system_call.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using testing::HasSubstr;

TEST(DurableFolder, MakesAllThatAreMissing) {
  const test::TemporaryDirectory folder;
  for (const char* name : {"a/b/c", "d/", "a/b/../e"}) make_durable_folder(folder / name);
  for (const char* name : {"a/b/c", "d", "a/e"})
    EXPECT_TRUE(std::filesystem::is_directory(folder / name)) << name;
  make_durable_folder(folder / "a/b");
}

TEST(DurableFolder, SyncsTheFolderAboveEachNewOne) {
  const test::TemporaryDirectory folder;
  for (int occurrence = 1; occurrence <= 2; ++occurrence) {
    std::filesystem::remove_all(folder / "a");
    EXPECT_THAT(test::error_when_system_call_fails([&] { make_durable_folder(folder / "a/b"); }, SYS_openat,
                                                   occurrence, EIO),
                HasSubstr("cannot open the folder"))
        << occurrence;
  }
}

TEST(DurableFolder, ACopyHoldsWhatLiesBelow) {
  const test::TemporaryDirectory folder;
  make_durable_folder(folder / "from/b");
  write_file_atomically(folder / "from/a", "1");
  write_file_atomically(folder / "from/b/c", "2");
  copy_durable_folder(folder / "to", folder / "from");
  EXPECT_EQ(read_file(folder / "to/a"), "1");
  EXPECT_EQ(read_file(folder / "to/b/c"), "2");
}

TEST(DurableFolder, ACopyRefusesWhatIsNoFile) {
  const test::TemporaryDirectory folder;
  make_durable_folder(folder / "from");
  ASSERT_EQ(mkfifo((folder / "from/pipe").c_str(), 0600), 0);
  try {
    copy_durable_folder(folder / "to", folder / "from");
    FAIL() << "a pipe was copied";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("pipe: not a regular file"));
  }
}

TEST(DurableFolder, NamesWhatIsInTheWay) {
  const test::TemporaryDirectory folder;
  write_file_atomically(folder / "file", "");
  try {
    make_durable_folder(folder / "file");
    FAIL() << "a file is no folder";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("file: cannot create the folder"));
  }
}

}  // namespace
}  // namespace ropd::io
