#include "io/files_in_use.h"

#include <filesystem>

#include "base/error.h"

namespace ropd::io {

void FilesInUse::add(const std::vector<InputFile>& files) {
  for (const InputFile& file : files) files_.try_emplace(file.path, stamp_of(file.path));
}

void FilesInUse::check() const {
  std::error_code error;
  for (const auto& [path, before] : files_) {
    if (!std::filesystem::is_regular_file(path, error)) continue;  // removed or moved away
    const FileStamp now = stamp_of(path);
    const bool is_same_file = now.device == before.device && now.inode == before.inode;
    if (is_same_file && (now.bytes != before.bytes || now.modified_ns != before.modified_ns))
      fail(path.string(),
           ": was written to while this command used it; what was made from it since is not kept. Repeat the "
           "command when the file is whole");
  }
}

}  // namespace ropd::io
