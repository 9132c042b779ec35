// Splits normalised text into the pieces that merges never cross: a hand-written scanner for the regex
//   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}
//   | ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
// of Qwen (Llama-3: \p{N}{1,3}), alternatives in that order, white space runs given back as a backtracking
// engine would.
#pragma once
#include <cstddef>
#include <string_view>

#include "text/tokenizer_file.h"
#include "text/unicode.h"

namespace ropd::text {

// Constant after construction.
class Pretokenizer {
 public:
  explicit Pretokenizer(SplitRule rule)
      : table_(character_table()), rule_(rule), max_digits_(rule == SplitRule::llama3 ? 3 : 1) {}
  // End of the piece that begins at text[begin]; begin < text.size(), text is valid UTF-8.
  size_t piece_end(std::string_view text, size_t begin) const;

 private:
  struct Character {
    CharClass kind;
    size_t end;
  };
  Character character_at(std::string_view text, size_t index) const {
    const CodePoint point = code_point_at(text, index);
    return {table_.class_of(point.value), index + point.num_bytes};
  }
  size_t skip(std::string_view text, size_t begin, CharClass kind) const;
  size_t white_space_end(std::string_view text, size_t begin) const;

  // constant after construction
  const CharacterTable& table_;
  SplitRule rule_;
  int max_digits_;
};

}  // namespace ropd::text
