#include "base/line_stream.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/standard_streams.h"

namespace ropd {

bool is_stream(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return path == kStandardOutput ||
         (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
          !std::filesystem::is_directory(status));
}

LineStream::LineStream(std::filesystem::path path) : path_(std::move(path)) {
  // Opened anew, a file behind standard output would be written from its beginning.
  file_ = path_ == kStandardOutput ? stdout : std::fopen(path_.c_str(), "we");
  if (file_ == nullptr) fail(path_.string(), ": cannot open for writing: ", std::strerror(errno));
}

LineStream::~LineStream() {
  if (file_ != stdout) std::fclose(file_);
}

void LineStream::write(std::string_view line_without_newline) {
  const bool is_out = std::fwrite(line_without_newline.data(), 1, line_without_newline.size(), file_) ==
                          line_without_newline.size() &&
                      std::fputc('\n', file_) != EOF && std::fflush(file_) == 0;
  if (!is_out) fail(path_.string(), ": cannot write: ", std::strerror(errno));
}

}  // namespace ropd
