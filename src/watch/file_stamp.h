// What tells a file from an earlier one of the same name, cheaply.
#pragma once
#include <sys/stat.h>

#include <string>

#include "base/file.h"

namespace ropd::watch {

// Size and time of the last change; "" when there is no such file.
inline std::string file_stamp(const Path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "";
  return std::to_string(status.st_size) + "-" + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec);
}

}  // namespace ropd::watch
