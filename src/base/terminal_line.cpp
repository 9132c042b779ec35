#include "base/terminal_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/visible_text.h"

namespace ropd {
namespace {

constexpr size_t kUnknownWidth = 80;  // of a terminal that does not tell

size_t columns_of(char32_t c) {
  const auto is_in = [c](char32_t low, char32_t high) { return c >= low && c <= high; };
  if (is_in(0x300, 0x36F) || is_in(0x1AB0, 0x1AFF) || is_in(0x20D0, 0x20FF) || is_in(0x200B, 0x200F) ||
      is_in(0xFE00, 0xFE0F))
    return 0;
  const bool is_wide = is_in(0x1100, 0x115F) || is_in(0x2E80, 0xA4CF) || is_in(0xAC00, 0xD7A3) ||
                       is_in(0xF900, 0xFAFF) || is_in(0xFE30, 0xFE6F) || is_in(0xFF00, 0xFF60) ||
                       is_in(0xFFE0, 0xFFE6) || is_in(0x1F300, 0x1FAFF) || is_in(0x20000, 0x3FFFD);
  return is_wide ? 2 : 1;
}

std::string joined(std::span<const LinePart> parts, int max_rank, const char* between) {
  std::string line;
  for (const LinePart& part : parts)
    if (part.rank <= max_rank && !part.text.empty()) line += (line.empty() ? "" : between) + part.text;
  return line;
}

}  // namespace

std::optional<size_t> terminal_columns() {
  if (::isatty(STDERR_FILENO) != 1) return std::nullopt;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknownWidth;
  return size.ws_col;
}

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    columns += columns_of(point.value);
    text.remove_prefix(point.num_bytes);
  }
  return columns;
}

std::string cut_to_columns(std::string_view text, size_t columns) {
  size_t used = 0, kept = 0;  // kept: bytes that leave room for the ellipsis
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = first_code_point(text.substr(at));
    used += columns_of(point.value);
    if (used > columns) return columns == 0 ? "" : std::string(text.substr(0, kept)) + "…";
    at += point.num_bytes;
    if (used + 1 <= columns) kept = at;
  }
  return std::string(text);
}

std::string fit_line(std::span<const LinePart> parts, std::optional<size_t> columns) {
  int rank = 0;
  for (const LinePart& part : parts) rank = std::max(rank, part.rank);
  if (!columns) return joined(parts, rank, "  ");
  for (; rank >= 0; --rank)
    for (const char* between : {"  ", " "}) {
      std::string line = joined(parts, rank, between);
      if (columns_of(line) <= *columns) return line;
      if (rank == 0 && between[1] == '\0') return cut_to_columns(line, *columns);
    }
  return "";
}

}  // namespace ropd
