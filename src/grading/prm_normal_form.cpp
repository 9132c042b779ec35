#include "grading/prm_normal_form.h"

#include <flint/fmpz.h>

#include <array>
#include <cmath>
#include <set>

#include "grading/evaluation.h"
#include "grading/latex_to_text.h"
#include "grading/plain_parser.h"
#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

constexpr std::array<std::string_view, 16> kUnits = {
    "degree", "cm",   "centimeter", "meter", "mile", "second", "minute", "hour",
    "day",    "week", "month",      "year",  "foot", "feet",   "inch",   "yard"};

// Deletes `unit` with es, s, spaces and a power behind it, also inside words (Monday -> Mon).
std::string delete_unit(std::string_view text, std::string_view unit) {
  std::string result;
  size_t begin = 0;
  while (true) {
    const size_t found = text.find(unit, begin);
    result.append(text.substr(begin, found == std::string_view::npos ? found : found - begin));
    if (found == std::string_view::npos) return result;
    size_t i = found + unit.size();
    if (text.substr(i).starts_with("es")) i += 2;
    if (text.substr(i).starts_with("s")) ++i;
    while (i < text.size() && text[i] == ' ') ++i;
    if (i + 1 < text.size() && text[i] == '^' && is_digit(text[i + 1])) {
      ++i;
      while (i < text.size() && is_digit(text[i])) ++i;
    }
    begin = i;
  }
}

// Deletes `head`, spaces, `tail`; spaces behind as well where asked.
std::string delete_spaced(std::string_view text, std::string_view head, std::string_view tail,
                          bool spaces_behind) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with(head)) {
      size_t end = i + head.size();
      if (!tail.empty())
        while (end < text.size() && text[end] == ' ') ++end;
      if (text.substr(end).starts_with(tail)) {
        i = end + tail.size();
        while (spaces_behind && i < text.size() && text[i] == ' ') ++i;
        continue;
      }
    }
    result.push_back(text[i++]);
  }
  return result;
}

bool is_near_integer(double value) {
  return std::isfinite(value) && std::fabs(value - std::nearbyint(value)) <= 1e-7;
}

// A double's integer value in full: 4e33 has 34 digits.
std::string integer_text(double value) {
  fmpz_t number;
  fmpz_init(number);
  fmpz_set_d(number, value);
  char* text = fmpz_get_str(nullptr, 10, number);
  std::string result = text;
  flint_free(text);
  fmpz_clear(number);
  return result;
}

std::string to_plain_text(const std::string& latex) {
  std::string text = replace_all(latex, "\\tfrac", "\\frac");
  text = replace_all(text, "\\dfrac", "\\frac");
  text = replace_all(text, "\\frac", " \\frac");  // keeps mixed numbers apart
  auto plain = latex_to_text(text);
  if (!plain) return latex;
  for (const auto& [from, to] :
       {std::pair{"√", "sqrt"}, {"π", "pi"}, {"∞", "inf"}, {"∪", "U"}, {"·", "*"}, {"×", "*"}})
    *plain = replace_all(*plain, from, to);
  return std::string(strip(*plain));
}

std::string without_spaces_behind_minus(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const bool is_minus = text[i] == '-';
    result.push_back(text[i++]);
    while (is_minus && i < text.size() && text[i] == ' ') ++i;
  }
  return result;
}

// "7 3/4" -> "7+3/4": a digit, spaces, a digit. Matches do not overlap, so of "1 2 3" only the first gap
// becomes a sum.
std::string join_mixed_numbers(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    result.push_back(text[i]);
    size_t end = i + 1;
    while (end < text.size() && text[end] == ' ') ++end;
    if (is_digit(text[i]) && end > i + 1 && end < text.size() && is_digit(text[end])) {
      result.push_back('+');
      result.push_back(text[end]);
      i = end + 1;
    } else {
      ++i;
    }
  }
  return result;
}

// -?digits.?/0*[1-9]digits*.? where the dots stand for any character.
bool is_fraction_text(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto is_digits_then_any = [](std::string_view part) {
    size_t i = 0;
    while (i < part.size() && is_digit(part[i])) ++i;
    return i > 0 && (i == part.size() || i + character_bytes(part, i) == part.size());
  };
  std::string_view top = text.substr(0, slash);
  if (top.starts_with('-')) top.remove_prefix(1);
  std::string_view bottom = text.substr(slash + 1);
  while (bottom.starts_with('0')) bottom.remove_prefix(1);
  return is_digits_then_any(top) && is_digits_then_any(bottom);
}

// The reference evaluates only what has at most two distinct letters and no dangerous powers.
bool may_evaluate(const std::string& difference) {
  const std::string rest = replace_all(replace_all(difference, "sqrt", ""), "frac", "");
  std::set<uint32_t> letters;
  for (size_t i = 0; i < rest.size(); i += character_bytes(rest, i))
    if (is_alphabetic(code_point(rest, i))) letters.insert(code_point(rest, i));
  if (letters.size() > 2) return false;
  if (difference.find("^{") != std::string::npos || difference.find("^(") != std::string::npos) return false;
  for (size_t i = 0; i + 2 < difference.size(); ++i) {
    if (difference[i] != '^' || !is_digit(difference[i + 1])) continue;
    if (is_digit(difference[i + 2]) || difference[i + 2] == '^') return false;
  }
  return true;
}

bool equal_elements(const std::string& given, const std::string& expected) {
  if (is_fraction_text(given) && is_fraction_text(expected)) return given == expected;
  if (is_integer_text(given) != is_integer_text(expected)) return false;
  if (!may_evaluate("(" + expected + ")-(" + given + ")")) return false;
  const auto left = parse_plain(expected, PlainSyntax::symbolic);
  const auto right = parse_plain(given, PlainSyntax::symbolic);
  return left && right && are_equal_values(left, right, Tolerance::exact);
}

}  // namespace

std::string without_thousands_commas(std::string_view input) {
  std::string text(input);
  while (true) {
    std::string next;
    for (size_t i = 0; i < text.size();) {
      const bool grouped = i + 4 < text.size() && is_digit(text[i]) && text[i + 1] == ',' &&
                           is_digit(text[i + 2]) && is_digit(text[i + 3]) && is_digit(text[i + 4]) &&
                           (i + 5 == text.size() || !is_digit(text[i + 5]));
      if (!grouped) {
        next.push_back(text[i++]);
        continue;
      }
      next.push_back(text[i]);
      next.append(text, i + 2, 3);
      i += 5;
      if (i < text.size()) next.push_back(text[i++]);  // the character behind belongs to the match
    }
    if (next == text) return text;
    text = std::move(next);
  }
}

bool is_integer_text(std::string_view text) {
  const auto value = python_float(without_thousands_commas(text));
  return value && is_near_integer(*value);
}

std::string prm_normal_form(std::string_view answer) {
  std::string text(whole_text_group(answer).value_or(answer));
  for (const auto& [from, to] : {std::pair{"\\%", "%"},
                                 {"\\$", "$"},
                                 {"$", ""},
                                 {"%", ""},
                                 {" or ", " , "},
                                 {" and ", " , "},
                                 {"million", "*10^6"},
                                 {"billion", "*10^9"},
                                 {"trillion", "*10^12"}})
    text = replace_all(text, from, to);
  for (const std::string_view unit : kUnits)
    if (text.find(unit) != std::string::npos) text = delete_unit(text, unit);
  text = delete_spaced(text, "^", "\\circ", false);
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}') text = text.substr(1, text.size() - 2);
  text = delete_spaced(text, ",\\!", "", true);
  if (const auto value = python_float(text); value && is_near_integer(*value))
    text = integer_text(std::nearbyint(*value));
  if (text.find('\\') != std::string::npos) text = to_plain_text(text);
  text = join_mixed_numbers(without_spaces_behind_minus(text));
  for (const char* removed : {" ", "{", "}"}) text = replace_all(text, removed, "");
  text = to_lower(text);
  if (is_integer_text(text))
    if (const auto value = python_float(replace_all(text, ",", "")); value && std::isfinite(*value))
      text = integer_text(std::trunc(*value));
  return text;
}

std::vector<std::string> split_tuple(std::string_view input) {
  const std::string text = without_thousands_commas(input);
  if (text.empty()) return {};
  constexpr std::string_view kBrackets = "()[]";
  const auto is_bracket = [&](char c) { return kBrackets.find(c) != std::string_view::npos; };
  if (text.size() <= 2 || !is_bracket(text.front()) || !is_bracket(text.back()) ||
      text.find_first_of(kBrackets, 1) != text.size() - 1)
    return {text};
  auto elements = split(std::string_view(text).substr(1, text.size() - 2), ",");
  for (auto& element : elements) element = std::string(strip(element));
  return elements;
}

bool equal_by_prm(std::string_view given_answer, std::string_view expected_answer) {
  const std::string expected = prm_normal_form(expected_answer);
  const std::string given = prm_normal_form(given_answer);
  if (expected == given) return true;
  if (given.empty()) return false;
  const auto expected_elements = split_tuple(expected);
  const auto given_elements = split_tuple(given);
  if (expected_elements.size() > 1 && (expected.front() != given.front() || expected.back() != given.back()))
    return false;
  if (expected_elements.size() != given_elements.size()) return false;
  for (size_t i = 0; i < given_elements.size(); ++i)
    if (!equal_elements(given_elements[i], expected_elements[i])) return false;
  return true;
}

}  // namespace ropd::grading
