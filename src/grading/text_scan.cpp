#include "grading/text_scan.h"

#include <cstdlib>

namespace ropd::grading {

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  size_t begin = 0;
  while (true) {
    const size_t found = text.find(from, begin);
    result.append(text.substr(begin, found == std::string_view::npos ? found : found - begin));
    if (found == std::string_view::npos) return result;
    result.append(to);
    begin = found + from.size();
  }
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t found = text.find(separator, begin);
    if (found == std::string_view::npos) break;
    parts.emplace_back(text.substr(begin, found - begin));
    begin = found + separator.size();
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

size_t character_bytes(std::string_view text, size_t index) {
  const auto lead = static_cast<unsigned char>(text[index]);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xC2 ? 1
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 1;
  if (index + length > text.size()) return 1;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[index + i]) & 0xC0) != 0x80) return 1;
  return length;
}

uint32_t code_point(std::string_view text, size_t index) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[index + i]));
  };
  switch (character_bytes(text, index)) {
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    case 4:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    default:
      return byte(0) < 0x80 ? byte(0) : 0x110000 + byte(0);
  }
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); i += character_bytes(text, i)) ++count;
  return count;
}

size_t previous_character(std::string_view text, size_t index) {
  for (size_t length = 2; length <= 4 && length <= index; ++length)
    if (character_bytes(text, index - length) == length) return index - length;
  return index - 1;
}

bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_alphabetic(uint32_t c) {
  if (c < 0x80) return is_letter(static_cast<char>(c));
  if (c < 0xC0) return c == 0xAA || c == 0xB5 || c == 0xBA;
  if (c == 0xD7 || c == 0xF7) return false;
  if (c < 0x2C2) return true;
  if (c < 0x370) return c >= 0x2E0 && c <= 0x2E4;  // modifier letters; combining marks are no letters
  if (c < 0x2000) return c != 0x375 && c != 0x37E && c != 0x384 && c != 0x385 && c != 0x387;
  if (c < 0x2C00) {
    // General punctuation to miscellaneous symbols: only the letter-like ones among them are letters.
    return c == 0x2071 || c == 0x207F || (c >= 0x2090 && c <= 0x209C) || c == 0x2102 || c == 0x2107 ||
           (c >= 0x210A && c <= 0x2113) || c == 0x2115 || (c >= 0x2119 && c <= 0x211D) || c == 0x2124 ||
           c == 0x2126 || c == 0x2128 || (c >= 0x212A && c <= 0x2139) || (c >= 0x2145 && c <= 0x2149);
  }
  if (c < 0x3040) return c == 0x3005 || c == 0x3006;
  if (c >= 0xE000 && c < 0xF900) return false;
  if (c >= 0xFF00 && c < 0xFFE0)
    return (c >= 0xFF21 && c <= 0xFF3A) || (c >= 0xFF41 && c <= 0xFF5A) || c >= 0xFF66;
  if (c >= 0xFFE0 && c < 0x10000) return false;
  if (c >= 0x1F000 && c < 0x20000) return false;
  return c < 0x110000;
}

bool is_word(uint32_t c) {
  if (c < 0x80) return is_letter(static_cast<char>(c)) || is_digit(static_cast<char>(c)) || c == '_';
  // Superscript and subscript digits and vulgar fractions are numeric characters.
  if (c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0xBC && c <= 0xBE) || c == 0x2070 ||
      (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) || (c >= 0x2150 && c <= 0x2189))
    return true;
  return is_alphabetic(c);
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty() && is_space(code_point(text, 0))) text.remove_prefix(character_bytes(text, 0));
  return text;
}

std::string_view strip(std::string_view text) {
  text = strip_left(text);
  while (!text.empty()) {
    const size_t last = previous_character(text, text.size());
    if (!is_space(code_point(text, last))) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

std::string to_lower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = character_bytes(text, i);
    uint32_t c = code_point(text, i);
    if (c < 0x80) {
      result.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : static_cast<char>(c));
    } else if (bytes == 2) {
      if ((c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3AB) || (c >= 0x410 && c <= 0x42F))
        c += 32;
      if (c >= 0x400 && c <= 0x40F) c += 80;
      result.push_back(static_cast<char>(0xC0 | c >> 6));
      result.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    } else {
      result.append(text.substr(i, bytes));
    }
    i += bytes;
  }
  return result;
}

std::optional<double> python_float(std::string_view text) {
  text = strip(text);
  std::string plain;
  size_t i = 0;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) plain.push_back(text[i++]);
  const std::string word = to_lower(text.substr(i));
  if (word == "inf" || word == "infinity" || word == "nan")
    return std::strtod((plain + word).c_str(), nullptr);
  bool digits = false;
  const auto read_digits = [&] {
    bool any = false;
    while (i < text.size() && (is_digit(text[i]) || (text[i] == '_' && any && i + 1 < text.size() &&
                                                     is_digit(text[i - 1]) && is_digit(text[i + 1])))) {
      if (text[i] != '_') plain.push_back(text[i]);
      any = true;
      ++i;
    }
    return any;
  };
  digits = read_digits();
  if (i < text.size() && text[i] == '.') {
    plain.push_back('.');
    ++i;
    digits = read_digits() || digits;
  }
  if (!digits) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    plain.push_back('e');
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) plain.push_back(text[i++]);
    if (!read_digits()) return std::nullopt;
  }
  if (i != text.size()) return std::nullopt;
  return std::strtod(plain.c_str(), nullptr);
}

bool is_plain_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || (text[0] == '0' && text.size() > 1)) return false;
  for (const char c : text)
    if (!is_digit(c)) return false;
  return true;
}

std::string brace_two(std::string_view text) {
  const size_t first = character_bytes(text, 0);
  const std::string begin = "{" + std::string(text.substr(0, first)) + "}";
  if (text[first] == '{') return begin + std::string(text.substr(first));
  const size_t second = character_bytes(text, first);
  return begin + "{" + std::string(text.substr(first, second)) + "}" +
         std::string(text.substr(first + second));
}

std::optional<std::string_view> whole_text_group(std::string_view text) {
  constexpr std::string_view kBegin = "\\text{";
  if (!text.starts_with(kBegin)) return std::nullopt;
  if (text.ends_with('\n')) text.remove_suffix(1);  // $ also matches before a final newline
  if (text.size() < kBegin.size() + 2 || !text.ends_with('}')) return std::nullopt;
  const std::string_view inside = text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
  if (inside.find('\n') != std::string_view::npos) return std::nullopt;  // the reference's dot is no newline
  return inside;
}

}  // namespace ropd::grading
