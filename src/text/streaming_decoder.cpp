#include "text/streaming_decoder.h"

#include <utility>

#include "text/unicode.h"

namespace ropd::text {

namespace {

// Where an unfinished but so far valid character begins; text.size() if the text ends with a whole or a
// broken one.
size_t unfinished_begin(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto lead = static_cast<uint8_t>(text[text.size() - back]);
    if ((lead & 0xC0) == 0x80) continue;
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
    if (length <= back || lead > 0xF4) break;
    // Repaired, a valid prefix is one U+FFFD; anything else is already known to be broken.
    const std::string_view rest = text.substr(text.size() - back);
    return repair_utf8(rest) == "\xEF\xBF\xBD" ? text.size() - back : text.size();
  }
  return text.size();
}

void append_hexadecimal(std::string& text, char32_t value, int num_digits) {
  for (int digit = num_digits - 1; digit >= 0; --digit)
    text.push_back("0123456789abcdef"[(value >> (4 * digit)) & 15]);
}

}  // namespace

std::string StreamingDecoder::push(Token id) {
  if (skip_special_ && tokenizer_.is_special(id)) return "";
  pending_ += tokenizer_.token_bytes(id);
  const size_t end = unfinished_begin(pending_);
  std::string ready = repair_utf8(std::string_view(pending_).substr(0, end));
  pending_.erase(0, end);
  return ready;
}

std::string StreamingDecoder::finish() { return repair_utf8(std::exchange(pending_, "")); }

std::string sanitize_for_terminal(std::string_view text) {
  std::string valid;
  if (!is_valid_utf8(text)) text = valid = repair_utf8(text);
  std::string result;
  for (size_t index = 0; index < text.size();) {
    const CodePoint point = code_point_at(text, index);
    const bool is_control = (point.value < 0x20 && point.value != '\n' && point.value != '\t') ||
                            (point.value >= 0x7F && point.value < 0xA0);
    const bool is_override = (point.value >= 0x202A && point.value <= 0x202E) ||
                             (point.value >= 0x2066 && point.value <= 0x2069) || point.value == 0x2028 ||
                             point.value == 0x2029;
    if (is_control) {
      result += "\\x";
      append_hexadecimal(result, point.value, 2);
    } else if (is_override) {
      result += "\\u";
      append_hexadecimal(result, point.value, 4);
    } else {
      result += text.substr(index, point.num_bytes);
    }
    index += point.num_bytes;
  }
  return result;
}

}  // namespace ropd::text
