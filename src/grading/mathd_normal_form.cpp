#include "grading/mathd_normal_form.h"

#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

// In the reference's order, which matters; a dot stands for any character (the words are used as patterns
// there).
constexpr std::array<std::string_view, 132> kUnitWords = {
    "east",   "degree",  "mph",    "kmph",      "ft",       "m sqaure",     " m east", "sq m",    "deg",
    "mile",   "q .",     "monkey", "prime",     "ratio",    "profit of rs", "rd",      "o",       "gm",
    "p . m",  "lb",      "tile",   "per",       "dm",       "lt",           "gain",    "ab",      "way",
    "west",   "a .",     "b .",    "c .",       "d .",      "e .",          "f .",     "g .",     "h .",
    "t",      "a",       "h",      "no change", "men",      "soldier",      "pie",     "bc",      "excess",
    "st",     "inches",  "noon",   "percent",   "by",       "gal",          "kmh",     "c",       "acre",
    "rise",   "a . m",   "th",     "π r 2",     "sq",       "mark",         "l",       "toy",     "coin",
    "sq . m", "gallon",  "° f",    "profit",    "minw",     "yr",           "women",   "feet",    "am",
    "pm",     "hr",      "cu cm",  "square",    "v â € ™",  "are",          "rupee",   "rounds",  "cubic",
    "cc",     "mtr",     "s",      "ohm",       "number",   "kmph",         "day",     "hour",    "minute",
    "min",    "second",  "man",    "woman",     "sec",      "cube",         "mt",      "sq inch", "mp",
    "∏ cm ³", "hectare", "more",   "sec",       "unit",     "cu . m",       "cm 2",    "rs .",    "rs",
    "kg",     "g",       "month",  "km",        "m",        "cm",           "mm",      "apple",   "liter",
    "loss",   "yard",    "pure",   "year",      "increase", "decrease",     "d",       "less",    "Surface",
    "litre",  "pi sq m", "s .",    "metre",     "meter",    "inch"};

// The end of `pattern` matched at `begin`, or nothing.
std::optional<size_t> match_unit(std::string_view text, size_t begin, std::string_view pattern) {
  size_t i = begin;
  for (const char c : pattern) {
    if (i >= text.size()) return std::nullopt;
    if (c == '.') {
      i += character_bytes(text, i);
    } else if (text[i] == c) {
      ++i;
    } else {
      return std::nullopt;
    }
  }
  return i;
}

// Deletes `unit` where it stands between characters that are not \w (or the ends). Matches do not overlap:
// the character behind one unit cannot also stand before the next, which is why the reference runs the list
// twice.
std::string delete_unit(std::string_view text, std::string_view unit) {
  std::string result;
  size_t copied = 0;
  size_t i = 0;
  const auto try_match = [&](size_t unit_begin) -> bool {
    const auto unit_end = match_unit(text, unit_begin, unit);
    if (!unit_end) return false;
    size_t match_end = *unit_end;
    if (match_end < text.size()) {
      if (is_word(code_point(text, match_end))) return false;
      match_end += character_bytes(text, match_end);
    }
    result.append(text.substr(copied, unit_begin - copied));
    result.append(text.substr(*unit_end, match_end - *unit_end));
    copied = i = match_end;
    return true;
  };
  while (i < text.size()) {
    if (i == 0 && try_match(0)) continue;
    const size_t bytes = character_bytes(text, i);
    if (!is_word(code_point(text, i)) && try_match(i + bytes)) continue;
    i += bytes;
  }
  result.append(text.substr(copied));
  return result;
}

// The first run of word characters from `begin` on.
std::string_view first_run(std::string_view text, size_t& begin) {
  while (begin < text.size() && !is_word(code_point(text, begin))) begin += character_bytes(text, begin);
  size_t end = begin;
  while (end < text.size() && is_word(code_point(text, end))) end += character_bytes(text, end);
  const std::string_view run = text.substr(begin, end - begin);
  begin = end;
  return run;
}

// The words and then their plurals, in the reference's order, and the same by their first run of word
// characters.
struct UnitTable {
  std::vector<std::string> words;
  std::unordered_map<std::string, std::vector<size_t>> by_first_run;
};

const UnitTable& unit_table() {
  static const UnitTable table = [] {
    UnitTable result;
    for (const std::string_view plural : {"", "s"})
      for (const std::string_view word : kUnitWords) result.words.push_back(std::string(word).append(plural));
    for (size_t i = 0; i < result.words.size(); ++i) {
      size_t begin = 0;
      result.by_first_run[std::string(first_run(result.words[i], begin))].push_back(i);
    }
    return result;
  }();
  return table;
}

// A unit can only match where its first run is a whole run of the text, and deleting units makes no new runs:
// so only the units of the runs that are there are tried, in order.
std::string delete_units(std::string text) {
  const UnitTable& table = unit_table();
  std::set<size_t> present;
  for (size_t i = 0; i < text.size();) {
    const auto found = table.by_first_run.find(std::string(first_run(text, i)));
    if (found != table.by_first_run.end()) present.insert(found->second.begin(), found->second.end());
  }
  for (int pass = 0; pass < 2; ++pass)
    for (const size_t index : present) {
      std::string shorter = delete_unit(text, table.words[index]);
      if (!shorter.empty()) text = std::move(shorter);
    }
  return text;
}

// \begin{array}{..} -> \begin{pmatrix}
std::string unify_matrices(std::string_view text) {
  constexpr std::string_view kArray = "\\begin{array}{";
  std::string result;
  size_t begin = 0;
  while (true) {
    const size_t found = text.find(kArray, begin);
    const size_t close = found == std::string_view::npos ? found : text.find('}', found + kArray.size());
    if (close == std::string_view::npos) break;
    result.append(text.substr(begin, found - begin)).append("\\begin{pmatrix}");
    begin = close + 1;
  }
  result.append(text.substr(begin));
  result = replace_all(result, "\\end{array}", "\\end{pmatrix}");
  return replace_all(result, "bmatrix", "pmatrix");
}

// Without "\text{...}" at the end, taken from the first \text{ that reaches the final brace, and without
// outer spaces.
std::string delete_trailing_text(const std::string& text) {
  const size_t begin = text.ends_with('}') ? text.find("\\text{") : std::string::npos;
  const std::string shorter(strip(std::string_view(text).substr(0, begin)));
  return shorter.empty() ? text : shorter;
}

// \sqrt3 -> \sqrt{3}; nothing where \sqrt ends the text (the reference stops with an exception there).
std::optional<std::string> brace_square_roots(std::string_view text) {
  const auto parts = split(text, "\\sqrt");
  std::string result = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.empty()) return std::nullopt;
    result += "\\sqrt";
    if (part[0] == '{') {
      result += part;
      continue;
    }
    const size_t bytes = character_bytes(part, 0);
    result.append("{").append(part.substr(0, bytes)).append("}").append(part.substr(bytes));
  }
  return result;
}

// \frac12 -> \frac{1}{2}, \frac1{2} -> \frac{1}{2}. A \frac with one character behind it leaves the text as
// it was, with none it is the reference's exception.
std::optional<std::string> brace_fractions(const std::string& text) {
  const auto parts = split(text, "\\frac");
  std::string result = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.empty()) return std::nullopt;
    result += "\\frac";
    if (part[0] == '{') {
      result += part;
      continue;
    }
    if (character_bytes(part, 0) == part.size()) return text;
    result += brace_two(part);
  }
  return result;
}

// a/b of plain integers -> \frac{a}{b}
std::string unify_slash(const std::string& text) {
  const auto parts = split(text, "/");
  if (parts.size() != 2 || !is_plain_integer(parts[0]) || !is_plain_integer(parts[1])) return text;
  if (parts[0] == "-0" || parts[1] == "-0") return text;
  return "\\frac{" + parts[0] + "}{" + parts[1] + "}";
}

// Nothing stands for the reference's exception.
std::optional<std::string> strip_string(std::string text) {
  text = replace_all(text, "\n", "");
  text = replace_all(text, "\\!", "");
  text = replace_all(text, "\\\\", "\\");
  text = unify_matrices(text);
  for (const auto& [from, to] : {std::pair{"tfrac", "frac"},
                                 {"dfrac", "frac"},
                                 {"\\neq", "\\ne"},
                                 {"\\leq", "\\le"},
                                 {"\\geq", "\\ge"},
                                 {"\\left", ""},
                                 {"\\right", ""}})
    text = replace_all(text, from, to);
  text = delete_units(delete_trailing_text(text));
  for (const char* removed : {"^{\\circ}", "^\\circ", "\\$"}) text = replace_all(text, removed, "");
  const auto parts = split(text, "\\text{ ");
  if (parts.size() > 2) return std::nullopt;
  text = replace_all(parts[0], "\\%", "");
  text = replace_all(replace_all(text, " .", " 0."), "{.", "{0.");
  if (text.empty()) return text;
  if (text[0] == '.') text = "0" + text;
  const auto sides = split(text, "=");
  if (sides.size() == 2 && count_characters(sides[0]) <= 2) text = sides[1];
  auto rooted = brace_square_roots(text);
  if (!rooted) return std::nullopt;
  auto braced = brace_fractions(replace_all(*rooted, " ", ""));
  if (!braced) return std::nullopt;
  return unify_slash(*braced == "0.5" ? "\\frac{1}{2}" : *braced);
}

}  // namespace

std::string mathd_normal_form(std::string_view answer) {
  std::string_view text = strip(answer);
  if (const auto inside = whole_text_group(text)) text = strip(*inside);
  auto result = strip_string(std::string(text));
  return result ? *result : std::string(text);
}

}  // namespace ropd::grading
