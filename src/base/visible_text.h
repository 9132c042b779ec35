// Text of strangers (models, data, names of files) made fit to be shown on a terminal or a page: whatever
// could move a cursor, hide, reorder or imitate other text becomes a visible sign. HTML is not its business:
// a page puts text into text nodes or escapes it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ropd {

// Control characters become their pictures (ESC: U+241B), invisible and reordering ones ⟨U+202E⟩, bytes that
// are not UTF-8 U+FFFD; newline and tab stay. The result is valid UTF-8.
std::string visible_text(std::string_view text);

// The same as one line: newline and tab become their pictures (␊, ␉) too. For what is quoted inside of a line, so
// that no text from outside can pretend to be the next one.
std::string visible_line(std::string_view text);

// visible_text of the first max_characters code points, with an ellipsis where something was left out: work and
// result are bounded whatever the text's size.
std::string visible_text(std::string_view text, size_t max_characters);

struct CodePoint {
  char32_t value = 0xFFFD;  // U+FFFD for a byte that is not UTF-8
  size_t num_bytes = 1;
};

// Of a text that is not empty.
CodePoint first_code_point(std::string_view text);

}  // namespace ropd
