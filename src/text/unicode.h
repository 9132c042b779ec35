// Unicode as the tokenizer needs it: validation and repair of UTF-8, NFC, and the classes of the split regex.
//   letter = \p{L}   number = \p{N}   space = \s (White_Space)   newline = \r or \n (also \s)   other = rest
// Versions: character data of the installed utf8proc (2.8: Unicode 15); NFC as of Unicode 9, as in the tokenizers library.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ropd::text {

enum class CharClass : uint8_t { other = 0, letter = 1, number = 2, space = 3, newline = 4 };

// One decoded character of valid UTF-8.
struct CodePoint {
  char32_t value = 0;
  uint32_t num_bytes = 0;
};

// The character at text[index]; text must be valid UTF-8 and index at a character's first byte.
inline CodePoint code_point_at(std::string_view text, size_t index) {
  const auto byte = [&](size_t offset) {
    return static_cast<char32_t>(static_cast<uint8_t>(text[index + offset]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {((lead & 0x1F) << 6) | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {((lead & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F), 3};
  return {((lead & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F), 4};
}

// The first byte of the character that ends before text[end]; 0 < end, text is valid UTF-8.
inline size_t character_begin_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

void append_utf8(std::string& text, char32_t code_point);
bool is_valid_utf8(std::string_view text);
// Each maximal broken sequence becomes one U+FFFD, as Rust's from_utf8_lossy and Python's errors="replace"
// do.
std::string repair_utf8(std::string_view text);
// \w of the `single_word` flag: alphabetic, mark, decimal digit, connector punctuation, join control.
bool is_word_character(char32_t code_point);
bool is_white_space(char32_t code_point);

// Classes of all code points in one flat table (0.2 MB). Constant after construction; any thread may read it.
class CharacterTable {
 public:
  CharacterTable();
  CharClass class_of(char32_t code_point) const {
    return static_cast<CharClass>(flags(code_point) & kClassMask);
  }
  // False where NFC of a text can never change at or across the boundary before this character.
  bool may_change_under_nfc(char32_t code_point) const { return (flags(code_point) & kNfcFlag) != 0; }

 private:
  static constexpr uint8_t kClassMask = 7, kNfcFlag = 8;
  static constexpr char32_t kEnd =
      0x32400;  // from here on all are unassigned, private or selectors: class other, stable
  uint8_t flags(char32_t code_point) const { return code_point < kEnd ? flags_[code_point] : 0; }
  // constant after construction
  std::vector<uint8_t> flags_;  // [kEnd]
};

// The table: a constant of the program, computed at first use because utf8proc's data is not known to the
// compiler.
const CharacterTable& character_table();

// Normalisation form C of valid UTF-8. `is_nfc` is the quick check: no copy is needed when it holds.
bool is_nfc(std::string_view text);
std::string normalize_nfc(std::string_view text);

// Where each byte boundary of `bytes` lies in normalize_nfc(repair_utf8(bytes)); kNoOffset inside a stretch
// that changes.
constexpr size_t kNoOffset = ~size_t{0};
std::vector<size_t> offsets_after_nfc(std::string_view bytes);  // [bytes + 1]

}  // namespace ropd::text
