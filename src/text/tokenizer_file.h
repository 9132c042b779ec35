// tokenizer.json as plain data: what the file says, checked, with byte-level strings turned into the bytes
// they stand for. Supported: model BPE (no dropout, prefix, suffix or byte fallback), merges as "a b" or
// ["a", "b"], normalizer null or NFC, pre-tokenizer Split with the regex of Qwen2/Qwen3/DeepSeek-R1-Distill
// or Llama-3 followed by ByteLevel, or ByteLevel alone without its regex, decoder ByteLevel. Anything else is
// refused by name; nothing is ignored that would change ids.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "records/rollout.h"

namespace ropd::text {

// A token recognised in the text before the regex and the merges see it.
struct AddedToken {
  Token id = -1;
  std::string content;
  bool is_special = false;      // left out by decode on request
  bool is_single_word = false;  // only where no word character touches it
  bool strips_left = false;     // takes the white space before it
  bool strips_right = false;    // takes the white space after it
  bool is_normalized = false;   // matched in the normalised text, otherwise in the raw text
  bool operator==(const AddedToken&) const = default;
};

struct Merge {
  Token left = -1, right = -1, result = -1;
  bool operator==(const Merge&) const = default;
};

enum class SplitRule { whole_text, qwen, llama3 };

struct TokenizerFile {
  std::vector<std::string> tokens;  // [V of the model] bytes of each token
  // [V of the model] 0 where the string is not of the byte alphabet: never made by merges
  std::vector<uint8_t> is_byte_level;
  std::vector<Merge> merges;      // in order of priority
  std::vector<AddedToken> added;  // by id
  bool normalizes_nfc = false;
  SplitRule split = SplitRule::qwen;
  bool ignores_merges = false;   // a piece that is a token is that token
  std::optional<Token> unknown;  // for bytes without a token
  bool fuses_unknown = false;
};

// `where` begins every error text. Nothing of `json` is kept.
TokenizerFile parse_tokenizer_file(std::string_view json, const std::string& where);

// The byte-level alphabet of GPT-2: printable bytes stand for themselves, the others for U+0100 onwards.
std::string byte_level_spelling(std::string_view bytes);
// The bytes a byte-level string stands for; nothing where a character is not of the alphabet.
std::optional<std::string> byte_level_bytes(std::string_view spelling);

}  // namespace ropd::text
