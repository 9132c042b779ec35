#include "io/checked_lines.h"

#include "base/file.h"

namespace ropd::io {
namespace {

std::string checksum(std::string_view row) { return "\t" + sha256(row).substr(0, 16); }

}  // namespace

std::string with_checksum(std::string_view row) { return std::string(row) + checksum(row); }

std::optional<std::string_view> checked_row(std::string_view line) {
  const size_t end = line.rfind('\t');
  if (end == std::string_view::npos || line.substr(end) != checksum(line.substr(0, end))) return std::nullopt;
  return line.substr(0, end);
}

}  // namespace ropd::io
