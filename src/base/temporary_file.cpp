#include "base/temporary_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/system_call.h"

namespace ropd {
namespace {

int open_file(const Path& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
}

}  // namespace

void remove_stale_temporaries(const Path& path) {
  const std::string prefix = path.filename().string() + ".tmp-";
  const Path folder = path.has_parent_path() ? path.parent_path() : Path(".");
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) ||
        name.find_first_not_of("0123456789-", prefix.size()) != std::string::npos)
      continue;
    const int descriptor = open_file(entry->path(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(descriptor);
  }
}

int create_temporary(const Path& path, Path& temporary) {
  static std::atomic<uint64_t> next_number{0};  // two threads may write beside the same place
  for (int attempt = 0;; ++attempt) {
    temporary = path;
    temporary += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(next_number++);
    const int descriptor = open_file(temporary, O_RDWR | O_CREAT | O_EXCL);
    // EEXIST: a process with the same id in another container
    if (descriptor < 0 && (errno != EEXIST || attempt >= 100))
      fail(path.string(), ": cannot create ", temporary.string(), ": ", system_reason(errno));
    if (descriptor < 0) continue;
    [[maybe_unused]] const int ignored = uninterrupted([&] { return ::flock(descriptor, LOCK_EX); });
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || status.st_nlink > 0) return descriptor;
    ::close(descriptor);  // between open and lock another process took it for a leftover
  }
}

}  // namespace ropd
