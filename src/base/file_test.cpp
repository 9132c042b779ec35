#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <functional>
#include <system_error>

#include "base/error.h"
#include "support/error_of.h"
#include "support/kill_at_system_call.h"
#include "support/test_data.h"

namespace ropd {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

size_t num_entries(const Path& directory) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST(MappedFile, ShowsTheBytesAndMoves) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "a", "hello");
  MappedFile first(directory / "a");
  MappedFile second = std::move(first);
  EXPECT_EQ(second.text(), "hello");
  EXPECT_EQ(first.bytes().size(), 0u);
  first = std::move(second);
  EXPECT_EQ(first.text(), "hello");
}

TEST(MappedFile, EmptyFileHasNoBytes) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "a", "");
  EXPECT_EQ(MappedFile(directory / "a").bytes().size(), 0u);
}

TEST(MappedFile, NamesTheMissingFile) {
  EXPECT_EQ(error_of([] { MappedFile("/nowhere/x"); }), "/nowhere/x: cannot open: No such file or directory");
  EXPECT_THAT(error_of([] { MappedFile("/"); }), HasSubstr("not a regular file"));
}

TEST(ReadFile, RefusesMoreThanTheBound) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "a", "12345");
  EXPECT_EQ(read_file(directory / "a", 5), "12345");
  EXPECT_THAT(error_of([&] { read_file(directory / "a", 4); }), HasSubstr("has 5 bytes, at most 4"));
  EXPECT_THAT(error_of([] { read_file("/dev/zero", 100); }), HasSubstr("more than 100"));
}

TEST(AtomicFile, ReplacesTheOldFileOnlyAtCommit) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "a", "old");
  AtomicFile file(directory / "a");
  file.write("new");
  EXPECT_EQ(read_file(directory / "a"), "old");
  file.commit();
  EXPECT_EQ(read_file(directory / "a"), "new");
  EXPECT_EQ(num_entries(directory.path()), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TemporaryDirectory directory;
  { AtomicFile(directory / "a").write("half"); }
  EXPECT_EQ(num_entries(directory.path()), 0u);
}

TEST(AtomicFile, WritesMoreThanItsBufferInOrder) {
  const test::TemporaryDirectory directory;
  std::string expected;
  AtomicFile file(directory / "a");
  for (int i = 0; i < 5; ++i) {
    const std::string small(300000, static_cast<char>('a' + i)), large(1500000, static_cast<char>('A' + i));
    file.write(small);
    file.write(large);
    expected += small + large;
  }
  file.commit();
  EXPECT_TRUE(read_file(directory / "a") == expected);
}

TEST(AtomicFile, WritesDevicesInPlaceInsteadOfReplacingThem) {
  write_file_atomically("/dev/null", "text");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(AtomicFile, ReportsAFullDeviceWithThePath) {
  EXPECT_EQ(error_of([] { write_file_atomically("/dev/full", "text"); }),
            "/dev/full: cannot write: No space left on device");
}

TEST(AtomicFile, KeepsTheOldFileWhenTheNewOneDoesNotFit) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "a", "old");
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{4096, limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);  // the write then fails with EFBIG
  setrlimit(RLIMIT_FSIZE, &small);
  const auto text = error_of([&] { write_file_atomically(directory / "a", std::string(10000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(text, AllOf(HasSubstr((directory / "a").string()), HasSubstr("cannot write: File too large")));
  EXPECT_EQ(read_file(directory / "a"), "old");
  EXPECT_EQ(num_entries(directory.path()), 1u);
}

TEST(AtomicFile, KilledAtAnySystemCallLeavesTheOldOrTheNewFileWhole) {
  const test::TemporaryDirectory directory;
  const std::string old_text(3000, 'o'), new_text(3'000'000, 'n');
  int num_old = 0, num_new = 0;
  const int calls = test::kill_at_every_system_call(
      [&] { write_file_atomically(directory / "a", old_text); },
      [&] {
        AtomicFile file(directory / "a");
        for (size_t i = 0; i < 30; ++i) file.write(std::string_view(new_text).substr(i * 100000, 100000));
        file.commit();
      },
      [&](int call) {
        const std::string text = read_file(directory / "a");
        num_old += text == old_text;
        num_new += text == new_text;
        EXPECT_TRUE(text == old_text || text == new_text) << "torn at system call " << call;
      });
  // create, three writes, fsync, close, rename, and the folder: open, fsync, close
  EXPECT_GE(calls, 10);
  EXPECT_GE(num_old, 6);
  EXPECT_GE(num_new, 3);
}

TEST(AtomicFile, RemovesWhatAKilledSaveLeft) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "a";
  size_t most = 0;
  test::kill_at_every_system_call([&] { write_file_atomically(path, "old"); },
                                  [&] { write_file_atomically(path, "new"); },
                                  [&](int) {
                                    most = std::max(most, num_entries(directory.path()));
                                    write_file_atomically(path, "next");
                                    EXPECT_EQ(num_entries(directory.path()), 1u);
                                  });
  EXPECT_EQ(most, 2u);  // there was something to remove
}

TEST(AtomicFile, LeavesTheTemporariesOfLivingWritersAndOtherFiles) {
  const test::TemporaryDirectory directory;
  for (const char* name : {"b.tmp-1-0", "a.tmp-x", "a.tmp-1-x", "aa.tmp-1-0"})
    write_file_atomically(directory / name, "");
  AtomicFile first(directory / "a");
  first.write("first");
  write_file_atomically(directory / "a", "second");
  first.commit();
  EXPECT_EQ(read_file(directory / "a"), "first");
  EXPECT_EQ(num_entries(directory.path()), 5u);
}

// Two processes of one study write the same files when they begin.
TEST(AtomicFile, SeveralProcessesMayReplaceOneFile) {
  const test::TemporaryDirectory directory;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (int n = 0; n < 100; ++n) write_file_atomically(directory / "a", "whole");
      } catch (const std::exception&) {
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(read_file(directory / "a"), "whole");
}

// Every call that can report a broken disk, and a full one.
TEST(AtomicFile, ReportsAFailingDiskWithThePathAndKeepsTheOldFile) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "a";
  const auto save = [&] { write_file_atomically(path, std::string(3000000, 'n')); };
  struct Case {
    long call;
    int occurrence;
    const char* text;
  };
  const Case cases[] = {{SYS_write, 1, "cannot write"},
                        {SYS_fsync, 1, "cannot make durable"},
                        {SYS_rename, 1, "cannot put the new file in place"}};
  for (const auto& [call, occurrence, text] : cases) {
    for (const int error_number : {EIO, ENOSPC}) {
      write_file_atomically(path, "old");
      const auto error = test::error_when_system_call_fails(save, call, occurrence, error_number);
      EXPECT_EQ(error, path.string() + ": " + text + ": " + std::generic_category().message(error_number));
      EXPECT_EQ(read_file(path), "old") << text;
      EXPECT_EQ(num_entries(directory.path()), 1u) << text;
    }
  }
  // When the folder cannot be made durable, the new file is in place, but the caller must not rely on it.
  const auto error = test::error_when_system_call_fails(save, SYS_fsync, 2, EIO);
  EXPECT_THAT(error, AllOf(HasSubstr(directory.path().string()), HasSubstr("Input/output error")));
  EXPECT_EQ(read_file(path).size(), 3000000u);
}

TEST(Files, ASignalThatInterruptsACallIsNoFailure) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "a";
  write_file_atomically(path, "one\ntor");
  const auto work = [&] {
    AppendFile(path).append("two");
    write_file_atomically(directory / "b", "new");
    truncate_file(path, 4);
    (void)read_file(path);
    copy_file_atomically(directory / "c", path);
    LockedFile(directory / "d").replace_content("held");
  };
  for (const long call : {SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_close, SYS_openat, SYS_flock,
                          SYS_write, SYS_read, SYS_pread64})
    for (int occurrence = 1; occurrence <= 6; ++occurrence)
      EXPECT_EQ(test::error_when_system_call_fails(work, call, occurrence, EINTR), "")
          << call << " " << occurrence;
}

TEST(CopyFile, GivesTheSameBytesOrNothing) {
  const test::TemporaryDirectory directory;
  const std::string content = std::string(3000000, 'n') + "end";
  write_file_atomically(directory / "from", content);
  const auto copy = [&] { copy_file_atomically(directory / "to", directory / "from"); };
  EXPECT_THAT(test::error_when_system_call_fails(copy, SYS_write, 2, ENOSPC),
              HasSubstr("/to: cannot write: No space left on device"));
  EXPECT_THAT(test::error_when_system_call_fails(copy, SYS_fsync, 1, EIO),
              HasSubstr("/to: cannot make durable: Input/output error"));
  EXPECT_EQ(num_entries(directory.path()), 1u);
  copy();
  EXPECT_EQ(read_file(directory / "to"), content);
  EXPECT_THAT(error_of([&] { copy_file_atomically(directory / "x", directory.path()); }),
              HasSubstr(": not a regular file"));
}

TEST(LockedFile, HoldsItsNewContentOnly) {
  const test::TemporaryDirectory directory;
  LockedFile file(directory / "a");
  EXPECT_TRUE(file.is_held());
  EXPECT_FALSE(LockedFile(directory / "a").is_held());
  file.replace_content("a longer one");
  file.replace_content("short");
  EXPECT_EQ(read_file(directory / "a"), "short");
  EXPECT_EQ(error_of([] { LockedFile("/nowhere/x"); }),
            "/nowhere/x: cannot be made: No such file or directory");
}

TEST(Files, APipeWithANameIsRefusedInsteadOfWaitedFor) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { (void)read_file(path); }),
              HasSubstr("/pipe: is a pipe that may wait for ever, expected a file"));
  EXPECT_THAT(error_of([&] { (void)MappedFile(path); }), HasSubstr("/pipe: not a regular file"));
  EXPECT_THAT(error_of([&] { (void)sha256_file(path); }),
              HasSubstr("/pipe: is a pipe that may wait for ever"));
  EXPECT_THAT(error_of([&] { AppendFile file(path); }), HasSubstr("/pipe: not a regular file"));
  EXPECT_THAT(error_of([&] { LockedFile file(path); }), HasSubstr("/pipe: cannot be made"));
  EXPECT_THAT(error_of([&] { truncate_file(path, 0); }), HasSubstr("/pipe: cannot open for cutting"));
  EXPECT_THAT(error_of([&] { sync_file(path); }), HasSubstr("/pipe: cannot make durable"));
}

TEST(AppendFile, ReportsAFailingDiskWithThePath) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "a";
  write_file_atomically(path, "one\n");
  const auto append = [&] { AppendFile(path).append("two"); };
  EXPECT_EQ(test::error_when_system_call_fails(append, SYS_write, 1, EIO),
            path.string() + ": cannot write: Input/output error");
  EXPECT_EQ(read_file(path), "one\n");
  EXPECT_EQ(test::error_when_system_call_fails(append, SYS_fdatasync, 1, EIO),
            path.string() + ": cannot make durable: Input/output error");
}

TEST(AppendFile, KilledAtAnySystemCallLosesNothingThatWasDurable) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "a";
  test::kill_at_every_system_call(
      [&] { write_file_atomically(path, "one\ntor"); }, [&] { AppendFile(path).append("two"); },
      [&](int call) {
        AppendFile file(path);  // what the next start does
        const std::string text = read_file(path);
        EXPECT_TRUE(text == "one\n" || text == "one\ntwo\n") << call << ": " << text;
      });
}

TEST(AtomicFile, NamesAMissingFolderAndAFolderInItsPlace) {
  const test::TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] { AtomicFile(directory / "no/a"); }), HasSubstr("No such file or directory"));
  EXPECT_THAT(error_of([&] { AtomicFile(directory.path()); }), HasSubstr("is a folder"));
}

TEST(AppendFile, KeepsWhatIsThereAndAddsLines) {
  const test::TemporaryDirectory directory;
  { AppendFile(directory / "a").append("one"); }
  AppendFile file(directory / "a");
  EXPECT_EQ(file.size(), 4u);
  AppendFile moved = std::move(file);
  moved.append_unsynced("two");
  moved.sync();
  EXPECT_EQ(read_file(directory / "a"), "one\ntwo\n");
  EXPECT_EQ(moved.size(), 8u);
}

TEST(AppendFile, HasOneWriterAtATime) {
  const test::TemporaryDirectory directory;
  {
    AppendFile first(directory / "a");
    first.append("one");
    EXPECT_THAT(error_of([&] { AppendFile(directory / "a"); }),
                HasSubstr("another process is writing this file"));
    first.append("two");
  }
  AppendFile(directory / "a").append("three");
  EXPECT_EQ(read_file(directory / "a"), "one\ntwo\nthree\n");
}

TEST(AppendFile, IsCutWhereItIsTold) {
  const test::TemporaryDirectory directory;
  AppendFile file(directory / "a");
  file.append("one");
  file.append("two");
  file.cut(4);
  file.append("three");
  EXPECT_EQ(read_file(directory / "a"), "one\nthree\n");
}

TEST(AppendFile, CutsOffATornLastLine) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "a", "one\ntw");
  AppendFile(directory / "a").append("three");
  EXPECT_EQ(read_file(directory / "a"), "one\nthree\n");
  write_file_atomically(directory / "b", std::string(200000, 'x'));
  EXPECT_EQ(AppendFile(directory / "b").size(), 0u);
  write_file_atomically(directory / "c", "one\n" + std::string(200000, 'x'));
  EXPECT_EQ(AppendFile(directory / "c").size(), 4u);
}

TEST(AppendFile, TakesBackALineThatDoesNotFit) {
  const test::TemporaryDirectory directory;
  AppendFile file(directory / "a");
  file.append("one");
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100, limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const auto text = error_of([&] { file.append(std::string(1000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(text, HasSubstr("File too large"));
  file.append("two");
  EXPECT_EQ(read_file(directory / "a"), "one\ntwo\n");
}

TEST(TruncateFile, CutsButNeverExtends) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "a", "12345");
  truncate_file(directory / "a", 3);
  EXPECT_EQ(read_file(directory / "a"), "123");
  EXPECT_THAT(error_of([&] { truncate_file(directory / "a", 4); }),
              HasSubstr("has 3 bytes, cannot be cut to 4"));
}

TEST(Sync, AcceptsWhatExistsAndNamesWhatDoesNot) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "a", "x");
  sync_file(directory / "a");
  sync_directory(directory.path());
  EXPECT_THAT(error_of([&] { sync_file(directory / "b"); }), HasSubstr("/b: cannot open"));
  EXPECT_THAT(error_of([&] { sync_directory(directory / "b"); }), HasSubstr("/b: cannot open the folder"));
}

TEST(FreeDiskBytes, IsPositiveHere) { EXPECT_GT(free_disk_bytes("/tmp"), 0u); }

TEST(Sha256, GivesTheKnownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const test::TemporaryDirectory directory;
  const std::string million(1000000, 'a');
  write_file_atomically(directory / "a", million + million);
  EXPECT_EQ(sha256_file(directory / "a"), sha256(million + million));
  EXPECT_EQ(sha256(million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace ropd
