#include "base/line_stream.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/standard_streams.h"
#include "base/system_call.h"
#include "base/waiting.h"

namespace ropd {

bool is_stream(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return path == kStandardOutput ||
         (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
          !std::filesystem::is_directory(status));
}

int open_stream(const std::filesystem::path& path) {
  if (path == kStandardOutput) {
    std::fflush(stdout);  // what was printed comes first
    // Opened anew, a file behind standard output would be written from its beginning.
    const int descriptor = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) fail(path.string(), ": cannot open for writing: ", system_reason(errno));
    return descriptor;
  }
  const int descriptor = uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0666); });
  if (descriptor < 0 && errno == ENXIO)
    fail(path.string(), ": is a pipe that nobody reads; start its reader first");
  if (descriptor < 0) fail(path.string(), ": cannot open for writing: ", system_reason(errno));
  return descriptor;
}

void write_stream(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    wait_for_room(descriptor, path.string());
    // A pipe with room has room for this much; more would wait for its reader inside of the call.
    const ssize_t written = ::write(descriptor, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN)
      fail(path.string(), ": cannot write: ", system_reason(errno));
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
}

LineStream::LineStream(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(open_stream(path_)) {}

LineStream::~LineStream() { ::close(descriptor_); }

void LineStream::write(std::string_view line_without_newline) {
  write_stream(descriptor_, std::string(line_without_newline) + "\n", path_);
}

}  // namespace ropd
