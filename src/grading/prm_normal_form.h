// Stage 2: the normal form of OpenAI's PRM800K grader. Units and percent signs vanish as substrings, LaTeX
// becomes plain text (latex_to_text), numbers within 1e-7 of an integer become that integer, case is dropped.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ropd::grading {

[[nodiscard]] std::string prm_normal_form(std::string_view answer);

// 1,000 -> 1000 wherever three digits follow a comma and no fourth.
[[nodiscard]] std::string without_thousands_commas(std::string_view text);

// The elements of (a,b] and the like, where no bracket stands inside; otherwise the text itself.
[[nodiscard]] std::vector<std::string> split_tuple(std::string_view text);

// A number within 1e-7 of an integer (thousands commas allowed).
[[nodiscard]] bool is_integer_text(std::string_view text);

// Equal normal forms, or element by element equal values: fractions only literally, integers never against
// non-integers, the rest by evaluating the difference.
[[nodiscard]] bool equal_by_prm(std::string_view given, std::string_view expected);

}  // namespace ropd::grading
