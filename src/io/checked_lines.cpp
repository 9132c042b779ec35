#include "io/checked_lines.h"

#include "base/file.h"

namespace ropd::io {
namespace {

constexpr size_t kDigits = 16;

std::string checksum(std::string_view row) { return "\t" + sha256(row).substr(0, kDigits); }

}  // namespace

std::string with_checksum(std::string_view row) { return std::string(row) + checksum(row); }

std::optional<std::string_view> checked_row(std::string_view line) {
  const size_t end = line.rfind('\t');
  if (end == std::string_view::npos || line.substr(end) != checksum(line.substr(0, end))) return std::nullopt;
  return line.substr(0, end);
}

bool is_unfinished_line(std::string_view line) {
  const bool ends_like_one = line.size() > kDigits && line[line.size() - kDigits - 1] == '\t';
  return ends_like_one || line.find('\0') != std::string_view::npos;
}

}  // namespace ropd::io
