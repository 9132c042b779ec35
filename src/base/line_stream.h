// Streams that a program writes to: standard output, pipes, devices (base/standard_streams.h says what `-` is).
#pragma once
#include <filesystem>
#include <string_view>

namespace ropd {

// True for standard output, pipes and devices: what goes there is gone, nothing can be put in its place later.
[[nodiscard]] bool is_stream(const std::filesystem::path& path);

// A descriptor of such a stream, for writing; its owner closes it. A pipe with a name that nobody reads is refused
// instead of waited for.
[[nodiscard]] int open_stream(const std::filesystem::path& path);

// All of it, waiting for a slow reader until the program is stopped (base/waiting.h).
void write_stream(int descriptor, std::string_view bytes, const std::filesystem::path& path);

// Lines for whoever reads such a stream while they are made: each is out when write() returns.
class LineStream {
 public:
  explicit LineStream(std::filesystem::path path);
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;
  ~LineStream();
  void write(std::string_view line_without_newline);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace ropd
