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

}  // namespace ropd::text
