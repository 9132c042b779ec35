// What a file holds, and how to see without reading it that it still does.
//   content hash   SHA-256 of the SHA-256 (in hexadecimal) of its blocks of 8 MiB: as strong as one SHA-256,
//   and
//                  computed by all threads at the speed of the disk
//   stamp          device, inode, size, time of modification and of change, as the system tells them
// A file whose stamp is that of the moment it was hashed has the content it had then, unless it was written
// to so shortly before that the clock of the file system could not tell (kClockSeconds): such a stamp is not
// trusted, and the file is read again.
#pragma once
#include <cstdint>
#include <string>

#include "base/file.h"

namespace ropd::io {

struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // since 1970
  bool operator==(const FileStamp&) const = default;
};

// Follows links. Fails when there is no such regular file.
FileStamp stamp_of(const Path& path);

std::string content_hash(const Path& path);

// A content hash with the stamp that vouches for it.
struct FileIdentity {
  std::string hash;
  FileStamp stamp;
  int64_t hashed_ns = 0;  // when reading began
  bool vouches_for(const FileStamp& now) const;
};

// Reads the file. Fails when it changes meanwhile.
FileIdentity identify(const Path& path);

}  // namespace ropd::io
