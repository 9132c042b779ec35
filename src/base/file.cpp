#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/line_stream.h"
#include "base/mapped_regions.h"
#include "base/sha256.h"
#include "base/standard_streams.h"
#include "base/system_call.h"
#include "base/temporary_file.h"
#include "base/waiting.h"

namespace ropd {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

int open_file(const Path& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
}

int sync(int descriptor) {
  return uninterrupted([&] { return ::fsync(descriptor); });
}

int cut_to(int descriptor, uint64_t size) {
  return uninterrupted([&] { return ::ftruncate(descriptor, static_cast<off_t>(size)); });
}

// A descriptor that is closed at the end of the scope; for the short functions below.
class Descriptor {
 public:
  Descriptor(const Path& path, int flags, const char* action) : value_(open_file(path, flags)) {
    if (value_ < 0) fail(path.string(), ": cannot ", action, ": ", system_reason(errno));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(value_); }
  int get() const { return value_; }

 private:
  int value_;
};

struct stat status_of(int descriptor, const Path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0)
    fail(path.string(), ": cannot read its size: ", system_reason(errno));
  return status;
}

// 0, or the error number.
int try_write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

void write_all(int descriptor, std::string_view bytes, const Path& path) {
  if (const int error_number = try_write_all(descriptor, bytes)) {
    fail(path.string(), ": cannot write: ", system_reason(error_number));
  }
}

void put(int descriptor, std::string_view bytes, const Path& path, bool is_regular) {
  if (is_regular)
    write_all(descriptor, bytes, path);
  else
    write_stream(descriptor, bytes, path);
}

// Of what has no end of its own (pipes, terminals) `waits` is true: the program can be stopped there.
size_t read_some(int descriptor, char* buffer, size_t bytes, const Path& path, bool waits = false) {
  for (;;) {
    if (waits) wait_for_input(descriptor, path.string());
    const ssize_t got = ::read(descriptor, buffer, bytes);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR && !(waits && errno == EAGAIN))
      fail(path.string(), ": cannot read: ", system_reason(errno));
  }
}

// Pipes that have somebody at the other end: the shell's <(command), and standard input.
bool is_given_pipe(const Path& path) {
  return path.string().starts_with("/dev/fd/") || path == kStandardInput;
}

// Of what is to be read to its end: no folder, and no pipe that nobody may ever write to.
struct stat readable_status(int descriptor, const Path& path) {
  const struct stat status = status_of(descriptor, path);
  if (S_ISFIFO(status.st_mode) && !is_given_pipe(path))
    fail(path.string(), ": is a pipe that may wait for ever, expected a file");
  if (S_ISDIR(status.st_mode)) fail(path.string(), ": is a folder, expected a file");
  return status;
}

Path folder_of(const Path& path) { return path.has_parent_path() ? path.parent_path() : Path("."); }

// True for what must be written in place: renaming over /dev/null or a pipe would destroy it.
bool is_special(const Path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) fail(path.string(), ": is a folder, expected a file to write");
  return !S_ISREG(status.st_mode);
}

}  // namespace

MappedFile::MappedFile(const Path& path) : path_(path) {
  const Descriptor descriptor(path, O_RDONLY | O_NONBLOCK, "open");  // so that opening a pipe does not wait
  const auto status = status_of(descriptor.get(), path);
  if (!S_ISREG(status.st_mode)) fail(path.string(), ": not a regular file");
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // an empty file cannot be mapped
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (address == MAP_FAILED) fail(path.string(), ": cannot map ", size_, " bytes: ", system_reason(errno));
  data_ = static_cast<const std::byte*>(address);
  note_mapping(data_, size_, path.string());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!data_) return;
  forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string read_file(const Path& path, uint64_t max_bytes) {
  const Descriptor descriptor(path, O_RDONLY | O_NONBLOCK, "open");
  const struct stat status = readable_status(descriptor.get(), path);
  const bool waits = !S_ISREG(status.st_mode);
  if (static_cast<uint64_t>(status.st_size) > max_bytes) {
    fail(path.string(), ": has ", status.st_size, " bytes, at most ", max_bytes, " are expected here");
  }
  std::string content;
  content.reserve(static_cast<size_t>(status.st_size));
  std::vector<char> buffer(1 << 16);
  // Pipes and /proc files report no size, so the bound is checked again while reading.
  while (const size_t got = read_some(descriptor.get(), buffer.data(), buffer.size(), path, waits)) {
    if (content.size() + got > max_bytes) fail(path.string(), ": more than ", max_bytes, " bytes");
    content.append(buffer.data(), got);
  }
  return content;
}

AtomicFile::AtomicFile(Path path) : path_(std::move(path)) {
  if (path_.filename().empty()) fail("'", path_.string(), "': not the name of a file");
  if (path_ == kStandardOutput || is_special(path_)) {
    descriptor_ = open_stream(path_);
    return;
  }
  remove_stale_temporaries(path_);
  descriptor_ = create_temporary(path_, temporary_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::write(std::string_view text) {
  if (buffer_.size() + text.size() > kBufferBytes) flush();
  if (text.size() >= kBufferBytes) {
    put(descriptor_, text, path_, /*is_regular=*/!temporary_.empty());
  } else {
    buffer_.append(text);
  }
}

void AtomicFile::flush() {
  put(descriptor_, buffer_, path_, /*is_regular=*/!temporary_.empty());
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  const bool is_regular = !temporary_.empty();
  if (is_regular && sync(descriptor_) != 0)
    fail(path_.string(), ": cannot make durable: ", system_reason(errno));
  // Keeps the lock until the file is in its place: without it another writer takes it for a leftover.
  const int lock = is_regular ? ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0) : -1;
  // Network file systems report a full disk only here. Interrupted or not, the descriptor is closed.
  const int result = ::close(std::exchange(descriptor_, -1));
  const int closed = result != 0 && errno == EINTR ? 0 : result;
  const int close_error = errno;
  if (!is_regular) return;
  const bool is_placed = closed == 0 && ::rename(temporary_.c_str(), path_.c_str()) == 0;
  const int error_number = closed != 0 ? close_error : errno;
  if (!is_placed) ::unlink(temporary_.c_str());
  if (lock >= 0) ::close(lock);
  if (!is_placed) fail(path_.string(), ": cannot put the new file in place: ", system_reason(error_number));
  sync_directory(folder_of(path_));
}

void write_file_atomically(const Path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void copy_file_atomically(const Path& to, const Path& from) {
  const Descriptor source(from, O_RDONLY | O_NONBLOCK, "open");
  if (!S_ISREG(status_of(source.get(), from).st_mode)) fail(from.string(), ": not a regular file");
  AtomicFile file(to);
  std::vector<char> buffer(kBufferBytes);
  while (const size_t got = read_some(source.get(), buffer.data(), buffer.size(), from))
    file.write(std::string_view(buffer.data(), got));
  file.commit();
}

AppendFile::AppendFile(Path path) : path_(std::move(path)) {
  const bool is_new = !std::filesystem::exists(path_);
  descriptor_ = open_file(path_, O_RDWR | O_CREAT | O_APPEND);
  if (descriptor_ < 0) fail(path_.string(), ": cannot open for appending: ", system_reason(errno));
  // Where the file system has no locks (some network mounts) it is up to the user.
  if (uninterrupted([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    fail(path_.string(), ": another process is writing this file; wait for it or choose another output");
  }
  const struct stat status = status_of(descriptor_, path_);
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail(path_.string(), ": not a regular file, expected one that lines can be added to");
  }
  if (status.st_nlink == 0) {  // removed between open and lock
    ::close(descriptor_);
    fail(path_.string(), ": another process has just removed this file; try again");
  }
  size_ = static_cast<uint64_t>(status.st_size);
  // Backwards to the last newline: what follows it is a line that a crash cut short.
  std::vector<char> block(1 << 16);
  uint64_t end = size_;
  bool found = false;
  while (end > 0 && !found) {
    const uint64_t begin = end > block.size() ? end - block.size() : 0;
    const ssize_t got = uninterrupted([&] {
      return ::pread(descriptor_, block.data(), static_cast<size_t>(end - begin), static_cast<off_t>(begin));
    });
    if (got != static_cast<ssize_t>(end - begin)) {
      const int error_number = got < 0 ? errno : EIO;
      ::close(descriptor_);
      fail(path_.string(), ": cannot read its end: ", system_reason(error_number));
    }
    const auto newline = std::string_view(block.data(), static_cast<size_t>(got)).rfind('\n');
    found = newline != std::string_view::npos;
    end = found ? begin + newline + 1 : begin;
  }
  if (end < size_ && cut_to(descriptor_, end) != 0) {
    const int error_number = errno;
    ::close(descriptor_);
    fail(path_.string(), ": cannot cut off its torn last line: ", system_reason(error_number));
  }
  size_ = end;
  if (is_new) sync_directory(folder_of(path_));
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AppendFile::append(std::string_view line_without_newline) {
  append_unsynced(line_without_newline);
  sync();
}

void AppendFile::append_unsynced(std::string_view line_without_newline) {
  std::string line(line_without_newline);
  line += '\n';
  if (const int error_number = try_write_all(descriptor_, line)) {
    // Part of the line may be in the file (full disk): take it back, so that the file still ends with a whole
    // line.
    [[maybe_unused]] const int ignored = cut_to(descriptor_, size_);
    fail(path_.string(), ": cannot write: ", system_reason(error_number));
  }
  size_ += line.size();
}

void AppendFile::cut(uint64_t size) {
  if (cut_to(descriptor_, size) != 0)
    fail(path_.string(), ": cannot cut to ", size, " bytes: ", system_reason(errno));
  size_ = size;
}

void AppendFile::sync() {
  if (uninterrupted([&] { return ::fdatasync(descriptor_); }) != 0)
    fail(path_.string(), ": cannot make durable: ", system_reason(errno));
}

LockedFile::LockedFile(Path path) : path_(std::move(path)) {
  descriptor_ = open_file(path_, O_WRONLY | O_CREAT | O_NONBLOCK);  // a pipe is refused, not waited for
  if (descriptor_ < 0) fail(path_.string(), ": cannot be made: ", system_reason(errno));
  if (uninterrupted([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0) return;
  const int error_number = errno;
  ::close(std::exchange(descriptor_, -1));
  if (error_number != EWOULDBLOCK)
    fail(path_.string(), ": cannot be locked: ", system_reason(error_number),
         " (does its file system have locks?)");
}

LockedFile::~LockedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LockedFile::replace_content(std::string_view content) {
  if (cut_to(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0)
    fail(path_.string(), ": cannot be emptied: ", system_reason(errno));
  write_all(descriptor_, content, path_);
}

void truncate_file(const Path& path, uint64_t size) {
  const Descriptor descriptor(path, O_WRONLY | O_NONBLOCK, "open for cutting");
  const auto status = status_of(descriptor.get(), path);
  if (static_cast<uint64_t>(status.st_size) < size) {
    fail(path.string(), ": has ", status.st_size, " bytes, cannot be cut to ", size);
  }
  if (cut_to(descriptor.get(), size) != 0 || sync(descriptor.get()) != 0) {
    fail(path.string(), ": cannot cut to ", size, " bytes: ", system_reason(errno));
  }
}

void sync_directory(const Path& directory) {
  const Descriptor descriptor(directory, O_RDONLY | O_DIRECTORY, "open the folder");
  // EINVAL: a file system without this notion (some network mounts) has nothing to flush.
  if (sync(descriptor.get()) != 0 && errno != EINVAL) {
    fail(directory.string(), ": cannot make the folder durable: ", system_reason(errno));
  }
}

void sync_file(const Path& path) {
  const Descriptor descriptor(path, O_RDONLY | O_NONBLOCK, "open");
  if (sync(descriptor.get()) != 0) fail(path.string(), ": cannot make durable: ", system_reason(errno));
}

uint64_t free_disk_bytes(const Path& directory) {
  struct statvfs status {};
  if (::statvfs(directory.c_str(), &status) != 0) {
    fail(directory.string(), ": cannot read the free disk space: ", system_reason(errno));
  }
  return uint64_t{status.f_bavail} * status.f_frsize;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.add(bytes.data(), bytes.size());
  return digest.hexadecimal();
}

std::string sha256(std::string_view text) {
  return sha256(std::as_bytes(std::span(text.data(), text.size())));
}

std::string sha256_file(const Path& path) {
  const Descriptor descriptor(path, O_RDONLY | O_NONBLOCK, "open");
  const bool waits = !S_ISREG(readable_status(descriptor.get(), path).st_mode);
  Sha256 digest;
  std::vector<char> buffer(kBufferBytes);
  while (const size_t got = read_some(descriptor.get(), buffer.data(), buffer.size(), path, waits)) {
    digest.add(buffer.data(), got);
  }
  return digest.hexadecimal();
}

}  // namespace ropd
