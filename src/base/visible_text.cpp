#include "base/visible_text.h"

#include <cstdio>
#include <limits>

namespace ropd {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Characters without a picture of their own that hide, reorder or break lines.
bool is_deceptive(char32_t c) {
  return (c >= 0x80 && c <= 0x9F) || c == 0xAD || c == 0x61C || c == 0x180E || c == 0x200B || c == 0x200E ||
         c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE007F);
}

enum class Breaks { kept, shown };  // newline and tab

void append_visible(std::string& out, char32_t c, std::string_view bytes, Breaks breaks) {
  if ((c == '\n' || c == '\t') && breaks == Breaks::kept) {
    out += bytes;
  } else if (c < 0x20 || c == 0x7F) {
    const char picture = static_cast<char>(0x80 + (c == 0x7F ? 0x21 : c));  // U+2400 + c
    out += {'\xE2', '\x90', picture};
  } else if (c == 0xFFFD) {
    out += "\uFFFD";
  } else if (is_deceptive(c)) {
    char text[24];
    std::snprintf(text, sizeof text, "⟨U+%04X⟩", static_cast<unsigned>(c));
    out += text;
  } else {
    out += bytes;
  }
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  char32_t value = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return {};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[length] || value > 0x10FFFF || is_surrogate) return {};
  return {value, length};
}

namespace {

std::string visible(std::string_view text, size_t max_characters, Breaks breaks) {
  std::string out;
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == max_characters) return out + "…";
    const CodePoint point = first_code_point(text);
    append_visible(out, point.value, text.substr(0, point.num_bytes), breaks);
    text.remove_prefix(point.num_bytes);
  }
  return out;
}

constexpr size_t kAll = std::numeric_limits<size_t>::max();

}  // namespace

std::string visible_text(std::string_view text) { return visible(text, kAll, Breaks::kept); }

std::string visible_text(std::string_view text, size_t max_characters) {
  return visible(text, max_characters, Breaks::kept);
}

std::string visible_line(std::string_view text) { return visible(text, kAll, Breaks::shown); }

}  // namespace ropd
