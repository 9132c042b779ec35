// Files that are read for as long as a command works (mapped models): whether one was written to meanwhile, so
// that results would be of its old content in part and of its new one in part.
// A file that another one has replaced under its name is no matter: who has the old one open goes on reading it.
#pragma once
#include <map>
#include <vector>

#include "io/file_identity.h"
#include "io/input_ledger.h"

namespace ropd::io {

// Threads may share it once all files are added.
class FilesInUse {
 public:
  // One that is added again stays as it was the first time.
  void add(const std::vector<InputFile>& files);
  // Fails naming a file that was written to since it was added. Asks the system for sizes and times, reads nothing:
  // call it between a result and the moment it is kept.
  void check() const;

 private:
  std::map<Path, FileStamp> files_;
};

}  // namespace ropd::io
