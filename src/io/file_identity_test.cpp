#include "io/file_identity.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

constexpr int64_t kLongAgo = 1'000'000'000;  // seconds

TEST(ContentHash, IsTheHashOfTheHashesOfItsBlocks) {
  const test::TemporaryDirectory directory;
  const std::string block(8 << 20, 'a');
  write_file_atomically(directory / "small", "abc");
  write_file_atomically(directory / "large", block + block + "b");
  write_file_atomically(directory / "empty", "");
  EXPECT_EQ(content_hash(directory / "small"), sha256(sha256("abc")));
  EXPECT_EQ(content_hash(directory / "large"), sha256(sha256(block) + sha256(block) + sha256("b")));
  EXPECT_EQ(content_hash(directory / "empty"), sha256(""));
}

TEST(ContentHash, SeesEveryBit) {
  const test::TemporaryDirectory directory;
  std::string text(3000, 'x');
  write_file_atomically(directory / "a", text);
  const std::string before = content_hash(directory / "a");
  for (const size_t at : {0u, 1500u, 2999u})
    for (int bit = 0; bit < 8; ++bit) {
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      write_file_atomically(directory / "a", text);
      EXPECT_NE(content_hash(directory / "a"), before) << at << " " << bit;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
    }
}

TEST(FileStamp, ChangesWithTheContentAlsoWhenTheTimeIsPutBack) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "a";
  write_file_atomically(path, "one");
  const timespec times[2] = {{.tv_sec = kLongAgo, .tv_nsec = 0}, {.tv_sec = kLongAgo, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  const FileStamp before = stamp_of(path);
  EXPECT_EQ(stamp_of(path), before);
  write_file_atomically(path, "two");
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  const FileStamp after = stamp_of(path);
  EXPECT_EQ(after.modified_ns, before.modified_ns);
  EXPECT_NE(after, before);
}

TEST(FileIdentity, AStampVouchesOnlyForAFileThatWasAtRest) {
  FileIdentity identity{.hash = "h", .stamp = {.bytes = 3, .changed_ns = 10'000'000'000}, .hashed_ns = 0};
  identity.hashed_ns = 12'000'000'000;  // the clock of the file system may not have moved since the change
  EXPECT_FALSE(identity.vouches_for(identity.stamp));
  identity.hashed_ns = 12'000'000'001;
  EXPECT_TRUE(identity.vouches_for(identity.stamp));
  FileStamp other = identity.stamp;
  other.inode = 7;
  EXPECT_FALSE(identity.vouches_for(other));
}

TEST(FileIdentity, OfNoFileIsAnErrorWithItsName) {
  const test::TemporaryDirectory directory;
  EXPECT_THROW((void)identify(directory / "absent"), Error);
  EXPECT_THROW((void)identify(directory.path()), Error);
}

}  // namespace
}  // namespace ropd::io
