#include "report/html.h"

#include <cmath>
#include <cstdio>

#include "base/visible_text.h"

namespace ropd::report {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string with_minus_sign(std::string text) {
  if (text.empty() || text[0] != '-') return text;
  if (text.find_first_of("123456789") == std::string::npos) return text.substr(1);  // "-0.0"
  return "−" + text.substr(1);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : visible_text(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string shorten(std::string_view text, size_t max_characters) {
  size_t count = 0, keep = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_continuation(text[i])) continue;
    if (count + 1 == max_characters) keep = i;
    if (++count > max_characters) return std::string(text.substr(0, keep)) + "…";
  }
  return std::string(text);
}

std::string format_number(double value, int decimals) {
  if (!std::isfinite(value)) return "–";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return std::string_view(text).size() + 1 < sizeof text ? with_minus_sign(text) : format_brief(value);
}

std::string format_brief(double value) {
  if (!std::isfinite(value)) return "–";
  char text[64];
  const double size = std::fabs(value);
  if (size >= 1000 && size < 1e9 && std::floor(value) == value)
    std::snprintf(text, sizeof text, "%.0f", value);
  else
    std::snprintf(text, sizeof text, "%.4g", value);
  return with_minus_sign(text);
}

std::string slug(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      out += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.substr(0, 60);
}

}  // namespace ropd::report
