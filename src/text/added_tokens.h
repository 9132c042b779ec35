// Finds added tokens in a text: leftmost, then longest, non-overlapping, with the flags single_word, lstrip
// and rstrip.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer_file.h"

namespace ropd::text {

// Where an added token stands, with the white space it takes.
struct AddedTokenMatch {
  const AddedToken* token = nullptr;
  size_t begin = 0, end = 0;
};

// Constant after construction.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  // The tokens must outlive the matcher. `contents[i]` is what is looked for (the normalised content of
  // normalised tokens).
  AddedTokenMatcher(std::vector<std::string> contents, std::vector<const AddedToken*> tokens);
  bool is_empty() const { return entries_.empty(); }
  // All matches in order; text is valid UTF-8. Special tokens are passed over as if they were not there when
  // parse_special is false. A token of white space may be found inside what the one before has stripped, as
  // in the official library.
  void find_all(std::vector<AddedTokenMatch>& matches, std::string_view text, bool parse_special) const;

 private:
  struct Entry {
    std::string content;
    const AddedToken* token;
  };
  struct Range {
    uint32_t begin = 0, end = 0;
  };
  const Entry* longest_at(std::string_view text, size_t index) const;

  // constant after construction
  std::vector<Entry> entries_;         // sorted by content
  std::array<Range, 256> by_first_{};  // entries that begin with this byte
};

}  // namespace ropd::text
