#include "io/files_in_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

class FilesInUseTest : public testing::Test {
 protected:
  FilesInUseTest() {
    for (const char* name : {"a", "b"}) write_file_atomically(directory_ / name, "one");
    files_.add({{"a", directory_ / "a"}, {"b", directory_ / "b"}});
  }
  const test::TemporaryDirectory directory_;
  FilesInUse files_;
};

TEST_F(FilesInUseTest, AreNamedWhenTheyWereWrittenTo) {
  EXPECT_NO_THROW(files_.check());
  std::ofstream(directory_ / "b") << "longer";
  try {
    files_.check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr((directory_ / "b").string() + ": was written to"));
  }
}

TEST_F(FilesInUseTest, OfTheSameSizeTheTimeTells) {
  std::ofstream(directory_ / "a") << "two";
  std::filesystem::last_write_time(directory_ / "a", std::filesystem::file_time_type::clock::now() +
                                                         std::chrono::hours(1));  // whatever the clock's step
  EXPECT_THROW(files_.check(), Error);
}

TEST_F(FilesInUseTest, MayBeReplacedOrRemovedUnderTheirNames) {
  std::filesystem::create_hard_link(directory_ / "a", directory_ / "open");  // its inode stays in use
  write_file_atomically(directory_ / "a", "another");
  std::filesystem::remove(directory_ / "b");
  EXPECT_NO_THROW(files_.check());
}

}  // namespace
}  // namespace ropd::io
