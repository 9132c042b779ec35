// Small text operations with Python's meaning, which the reference grader's rules are written in: characters
// are Unicode code points (UTF-8 here), \w is Unicode, float() ignores surrounding white space. Bytes that
// are not UTF-8 count as one character each, so no input is refused.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ropd::grading {

// Every occurrence of `from`, left to right without overlap, becomes `to`.
[[nodiscard]] std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

[[nodiscard]] std::vector<std::string> split(std::string_view text, std::string_view separator);

// Without white space (Unicode) at both ends.
[[nodiscard]] std::string_view strip(std::string_view text);
[[nodiscard]] std::string_view strip_left(std::string_view text);

// Bytes of the character that begins at `index` (1..4; never past the end).
[[nodiscard]] size_t character_bytes(std::string_view text, size_t index);
// The code point at `index`; a byte that is not UTF-8 gives 0x110000 + byte.
[[nodiscard]] uint32_t code_point(std::string_view text, size_t index);
[[nodiscard]] size_t count_characters(std::string_view text);
// The character that ends just before `index` (> 0) begins here.
[[nodiscard]] size_t previous_character(std::string_view text, size_t index);

[[nodiscard]] inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
[[nodiscard]] bool is_space(uint32_t character);
[[nodiscard]] bool is_alphabetic(uint32_t character);
// Python's \w: letters, digits, underscore.
[[nodiscard]] bool is_word(uint32_t character);

// ASCII, Latin-1, Greek and Cyrillic capitals become small letters; other characters stay.
[[nodiscard]] std::string to_lower(std::string_view text);

// Python's float(text): the nearest double; nothing when it is not a number. inf and nan are numbers.
[[nodiscard]] std::optional<double> python_float(std::string_view text);

// -?(0|[1-9][0-9]*)
[[nodiscard]] bool is_plain_integer(std::string_view text);

// 12... -> {1}{2}..., 1{2}... -> {1}{2}...: the shorthand behind \frac, which is two characters at least.
[[nodiscard]] std::string brace_two(std::string_view text);

// Where the whole text is \text{...} with a non-empty inside: the inside.
[[nodiscard]] std::optional<std::string_view> whole_text_group(std::string_view text);

}  // namespace ropd::grading
