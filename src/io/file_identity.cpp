#include "io/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"

namespace ropd::io {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{8} << 20;
constexpr int64_t kClockSeconds = 2;  // the coarsest clock of a file system in use (FAT)

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The whole block, or the error number.
int read_block(int descriptor, std::vector<std::byte>& block, uint64_t begin) {
  for (size_t done = 0; done < block.size();) {
    const ssize_t got =
        ::pread(descriptor, block.data() + done, block.size() - done, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ESTALE;  // shorter than a moment ago
    done += static_cast<size_t>(got);
  }
  return 0;
}

}  // namespace

FileStamp stamp_of(const Path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    fail(path.string(), ": cannot be looked at: ", std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) fail(path.string(), ": not a regular file");
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .bytes = static_cast<uint64_t>(status.st_size),
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim)};
}

std::string content_hash(const Path& path) {
  const uint64_t bytes = stamp_of(path).bytes, blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path.string(), ": cannot open: ", std::generic_category().message(errno));
  std::vector<std::string> hashes(blocks);
  std::atomic<int> error_number{0};
  parallel_tasks(blocks, [&](size_t b, size_t) {
    if (error_number != 0) return;
    std::vector<std::byte> block(std::min(kBlockBytes, bytes - b * kBlockBytes));
    if (const int error = read_block(descriptor, block, b * kBlockBytes))
      error_number = error;
    else
      hashes[b] = sha256(block);
  });
  ::close(descriptor);
  if (error_number != 0)
    fail(path.string(), ": cannot read: ", std::generic_category().message(error_number));
  std::string all;
  for (const std::string& hash : hashes) all += hash;
  return sha256(all);
}

bool FileIdentity::vouches_for(const FileStamp& now) const {
  return stamp == now && stamp.changed_ns + kClockSeconds * 1'000'000'000 < hashed_ns;
}

FileIdentity identify(const Path& path) {
  FileIdentity identity;
  identity.hashed_ns = now_ns();
  identity.stamp = stamp_of(path);
  identity.hash = content_hash(path);
  if (stamp_of(path) != identity.stamp) fail(path.string(), ": changed while it was read; try again");
  return identity;
}

}  // namespace ropd::io
