// Any bytes as text: decode(encode(x)) is NFC of the repaired text, offsets cover it, the streaming decoder
// agrees with decode. The first byte chooses between bytes as text and bytes as ids.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/visible_text.h"
#include "text/streaming_decoder.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace {

using ropd::Token;

// All 256 bytes, a few merges and added tokens of every kind that keeps the text.
std::string tokenizer_json() {
  std::string vocabulary, separator;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string spelling = ropd::text::byte_level_spelling(std::string(1, static_cast<char>(byte)));
    vocabulary += separator + "\"" + (spelling == "\"" || spelling == "\\" ? "\\" : "") + spelling +
                  "\": " + std::to_string(byte);
    separator = ", ";
  }
  vocabulary += R"(, "ab": 256, "abab": 257, "ĠĠ": 258, "ĠĠĠĠ": 259, "Ã©": 260, "th": 261)";
  return R"({"added_tokens": [{"id": 262, "content": "<s>", "special": true, "normalized": false},
    {"id": 263, "content": "<t>", "special": false, "normalized": true}, {"id": 264, "content": "<ab", "single_word": true,
     "special": false, "normalized": false}], "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated", "pattern": {"Regex":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}, "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["a b", "ab ab", "Ġ Ġ", "ĠĠ ĠĠ", "Ã ©", "t h"], "vocab": {)" +
         vocabulary + "}}}";
}

void check_text(const ropd::text::Tokenizer& tokenizer, std::string_view bytes) {
  const auto encoding = tokenizer.encode_with_offsets(bytes);
  if (tokenizer.encode(bytes) != encoding.ids) std::abort();
  if (tokenizer.decode(encoding.ids, false) != encoding.text) std::abort();
  const std::string repaired = ropd::text::repair_utf8(bytes);
  if (repaired.find('<') == std::string::npos && encoding.text != ropd::text::normalize_nfc(repaired))
    std::abort();
  size_t at = 0;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    if (encoding.begin[i] != at || encoding.end[i] < at) std::abort();
    at = encoding.end[i];
  }
  if (at != encoding.text.size()) std::abort();
  const size_t half = encoding.ids.size() / 2;
  const auto first = tokenizer.encode_first(bytes, half);
  if (!std::equal(first.begin(), first.end(), encoding.ids.begin()) || first.size() != half) std::abort();
  (void)tokenizer.encode(bytes, false);
  if (!ropd::text::is_valid_utf8(ropd::visible_text(bytes))) std::abort();
}

void check_ids(const ropd::text::Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<Token> ids;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2)
    ids.push_back(
        static_cast<Token>((static_cast<uint8_t>(bytes[i]) | static_cast<uint8_t>(bytes[i + 1]) << 8) % 270) -
        2);
  ropd::text::StreamingDecoder decoder(tokenizer);
  std::string text;
  for (const Token id : ids) text += decoder.push(id);
  if (text + decoder.finish() != tokenizer.decode(ids)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokenizer = ropd::text::Tokenizer::parse(tokenizer_json(), "fuzz");
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0)
    check_ids(tokenizer, bytes);
  else
    check_text(tokenizer, bytes);
  return 0;
}
