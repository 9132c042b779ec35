// How fast a file can be read, by a short measurement.
#pragma once
#include "base/file.h"

namespace ropd::io {

// Bytes a second from the beginning of the file on, for so many seconds or to its end; past the system's
// cache where the file system allows it, so that it is the disk that is measured.
double measure_read_speed(const Path& path, double seconds);

}  // namespace ropd::io
