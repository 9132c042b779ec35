// A folder under a name of its own beside the place where it will be, so that it appears there whole or not at all.
#pragma once
#include "base/file.h"

namespace ropd::io {

// Removed unless it was moved to its place. Its owner holds a lock on it; those of killed owners, which nobody locks,
// are removed first.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const Path& place);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const Path& path() const { return path_; }
  // Moves the folder, or one that was made in it. Replaces an empty folder, nothing else.
  void move_to(const Path& place);
  void move_to(const Path& place, const Path& made_inside) const;

 private:
  Path path_;
  int lock_ = -1;
};

}  // namespace ropd::io
