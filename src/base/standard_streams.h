// What `-` means on a command line, as paths: whoever reads or writes files needs to know nothing more.
// AtomicFile (base/file.h) writes to standard output as to a pipe; JsonlReader (io/jsonl.h) reads standard input.
#pragma once

namespace ropd {

inline constexpr const char* kStandardInput = "/dev/stdin";
inline constexpr const char* kStandardOutput = "/dev/stdout";

}  // namespace ropd
