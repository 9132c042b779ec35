#include "io/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/error.h"

namespace ropd::io {

namespace fs = std::filesystem;

namespace {

Path folder_of(const Path& place) { return place.has_parent_path() ? place.parent_path() : Path("."); }

void remove_stale(const Path& place) {
  const std::string prefix = place.filename().string() + ".tmp-";
  std::vector<Path> stale;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_of(place), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || name.find_first_not_of("0123456789", prefix.size()) != std::string::npos)
      continue;
    const int descriptor = ::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) stale.push_back(entry.path());
    ::close(descriptor);
  }
  for (const Path& path : stale) fs::remove_all(path, ignored);
}

}  // namespace

TemporaryFolder::TemporaryFolder(const Path& place) : path_(place.string() + ".tmp-" + std::to_string(::getpid())) {
  remove_stale(place);
  std::error_code error;
  fs::remove_all(path_, error);  // where locks do not work: left by one that had the same id
  fs::create_directory(path_, error);
  if (error) fail(path_.string(), ": cannot create the folder: ", error.message());
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void TemporaryFolder::move_to(const Path& place) {
  move_to(place, path_);
  path_.clear();
}

void TemporaryFolder::move_to(const Path& place, const Path& made_inside) const {
  sync_directory(made_inside);
  std::error_code error;
  fs::rename(made_inside, place, error);
  if (error) fail(place.string(), ": cannot put the new folder in place: ", error.message());
  sync_directory(folder_of(place));
}

}  // namespace ropd::io
