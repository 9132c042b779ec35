#include "io/durable_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
