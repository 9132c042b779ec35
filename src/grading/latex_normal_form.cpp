#include "grading/latex_normal_form.h"

#include <array>
#include <optional>

#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

// Words that count as a unit at the end of an answer, also with s or es behind. Dots stand for any character.
constexpr std::array kUnitWords = std::to_array<std::string_view>({"integerpoint",
                                                                   "feet",
                                                                   "sue",
                                                                   "digit",
                                                                   "pound",
                                                                   "meal",
                                                                   "edge",
                                                                   "student",
                                                                   "children ticket",
                                                                   "multiple",
                                                                   "east",
                                                                   "degree",
                                                                   "mph",
                                                                   "kmph",
                                                                   "ft",
                                                                   "m square",
                                                                   " m east",
                                                                   "sq m",
                                                                   "deg",
                                                                   "mile",
                                                                   "q .",
                                                                   "monkey",
                                                                   "prime",
                                                                   "ratio",
                                                                   "profit of rs",
                                                                   "rd",
                                                                   "o",
                                                                   "gm",
                                                                   "p . m",
                                                                   "lb",
                                                                   "tile",
                                                                   "per",
                                                                   "dm",
                                                                   "lt",
                                                                   "gain",
                                                                   "ab",
                                                                   "way",
                                                                   "west",
                                                                   "a .",
                                                                   "b .",
                                                                   "c .",
                                                                   "d .",
                                                                   "e .",
                                                                   "f .",
                                                                   "g .",
                                                                   "h .",
                                                                   "t",
                                                                   "h",
                                                                   "no change",
                                                                   "men",
                                                                   "soldier",
                                                                   "pie",
                                                                   "bc",
                                                                   "excess",
                                                                   "st",
                                                                   "inches",
                                                                   "noon",
                                                                   "cent",
                                                                   "by",
                                                                   "gal",
                                                                   "kmh",
                                                                   "c",
                                                                   "acre",
                                                                   "rise",
                                                                   "a . m",
                                                                   "th",
                                                                   "π r 2",
                                                                   "sq",
                                                                   "mark",
                                                                   "l",
                                                                   "toy",
                                                                   "coin",
                                                                   "sq . m",
                                                                   "gallon",
                                                                   "° f",
                                                                   "profit",
                                                                   "minw",
                                                                   "yr",
                                                                   "women",
                                                                   "am",
                                                                   "pm",
                                                                   "hr",
                                                                   "cu cm",
                                                                   "square",
                                                                   "v â € ™",
                                                                   "are",
                                                                   "rupee",
                                                                   "rounds",
                                                                   "cubic",
                                                                   "cc",
                                                                   "mtr",
                                                                   "s",
                                                                   "ohm",
                                                                   "number",
                                                                   "day",
                                                                   "hour",
                                                                   "minute",
                                                                   "min",
                                                                   "second",
                                                                   "man",
                                                                   "woman",
                                                                   "sec",
                                                                   "cube",
                                                                   "mt",
                                                                   "sq inch",
                                                                   "mp",
                                                                   "∏ cm ³",
                                                                   "hectare",
                                                                   "more",
                                                                   "unit",
                                                                   "cu . m",
                                                                   "cm 2",
                                                                   "rs .",
                                                                   "rs",
                                                                   "kg",
                                                                   "g",
                                                                   "month",
                                                                   "km",
                                                                   "m",
                                                                   "cm",
                                                                   "mm",
                                                                   "apple",
                                                                   "liter",
                                                                   "loss",
                                                                   "yard",
                                                                   "pure",
                                                                   "year",
                                                                   "increase",
                                                                   "decrease",
                                                                   "d",
                                                                   "less",
                                                                   "Surface",
                                                                   "litre",
                                                                   "pi sq m",
                                                                   "s .",
                                                                   "metre",
                                                                   "meter",
                                                                   "inch"});

bool is_blank(char c) { return is_space(static_cast<unsigned char>(c)); }

bool is_ascii_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// \left( -> (, \right\} -> \}: only directly before a delimiter.
std::string delete_delimiter_sizes(std::string_view text) {
  static constexpr std::string_view kLeft[] = {"\\{",     "{",        "\\|",      "|",        "[",
                                               "(",       "\\lgroup", "\\lbrace", "\\lbrack", "\\vert",
                                               "\\lvert", "\\lceil",  "\\lfloor", "\\langle"};
  static constexpr std::string_view kRight[] = {"\\}",     "}",        "\\|",      "|",        "]",
                                                ")",       "\\rgroup", "\\rbrace", "\\rbrack", "\\vert",
                                                "\\rvert", "\\rceil",  "\\rfloor", "\\rangle"};
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      result.push_back(text[i++]);
      continue;
    }
    const std::string_view rest = text.substr(i);
    size_t skipped = 0;
    for (const std::string_view command : {"\\left", "\\mleft", "\\right", "\\mright"}) {
      if (!rest.starts_with(command)) continue;
      const bool is_left = command.ends_with("left");
      for (size_t k = 0; k < std::size(kLeft); ++k)
        if (rest.substr(command.size()).starts_with(is_left ? kLeft[k] : kRight[k])) skipped = command.size();
    }
    if (skipped == 0) result.push_back(text[i++]);
    i += skipped;
  }
  return result;
}

// Texts that vanish: "th", empty \text{}, dollars, quotes, \displaystyle, \! with the spaces behind it.
std::string delete_decoration(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    size_t end = i;
    if (rest.starts_with("\\mathrm{th}")) {
      end = i + 11;
    } else if (rest.starts_with("\\!")) {
      end = i + 2;
      while (end < text.size() && is_blank(text[end])) ++end;
    } else if (rest.starts_with("\\text")) {
      size_t k = i + 5;
      while (k < text.size() && is_blank(text[k])) ++k;
      if (k < text.size() && text[k] == '{') {
        ++k;
        while (k < text.size() && is_blank(text[k])) ++k;
        if (k < text.size() && text[k] == '}') end = k + 1;
      }
    } else if (rest.starts_with("\\$")) {
      end = i + 2;
    } else if (rest[0] == '$' || ((rest[0] == '"' || rest[0] == '\'') && (i == 0 || text[i - 1] != '\\'))) {
      end = i + 1;
    } else if (rest.starts_with("\\displaystyle")) {
      end = i + 13;
    }
    if (end == i) result.push_back(text[i++]);
    if (end > i) i = end;
  }
  return result;
}

struct Replacement {
  size_t length;  // of the text replaced
  std::string_view text;
};

size_t skip_blanks(std::string_view text, size_t i) {
  while (i < text.size() && is_blank(text[i])) ++i;
  return i;
}

// ",  and" or "or" that stands alone, or \text{ and }.
std::optional<Replacement> match_conjunction(std::string_view text, size_t i) {
  const size_t word = skip_blanks(text, text[i] == ',' ? i + 1 : i);
  const std::string_view rest = text.substr(word);
  const bool letter_before = i > 0 && is_letter(text[i - 1]);
  for (const std::string_view name : {"and", "or"}) {
    const size_t end = word + name.size();
    if (!letter_before && rest.starts_with(name) && (end >= text.size() || !is_letter(text[end])))
      return Replacement{end - i, ","};
  }
  if (!rest.starts_with("\\text{")) return std::nullopt;
  const size_t inside = skip_blanks(text, word + 6);
  for (const std::string_view name : {"and", "or"}) {
    const size_t close = skip_blanks(text, inside + name.size());
    if (text.substr(inside).starts_with(name) && close < text.size() && text[close] == '}')
      return Replacement{close + 1 - i, ","};
  }
  return std::nullopt;
}

std::optional<Replacement> match_percent_word(std::string_view text, size_t i) {
  const size_t word = skip_blanks(text, i);
  for (const std::string_view name : {"percentage", "percent", "pct"}) {
    const size_t end = word + name.size();
    const bool bounded =
        (word == 0 || !is_ascii_word(text[word - 1])) && (end >= text.size() || !is_ascii_word(text[end]));
    if (text.substr(word).starts_with(name) && bounded) return Replacement{end - i, "%"};
  }
  for (const std::string_view name : {"\\text{percent}", "\\text{pct}", "\\text{percentage}"})
    if (text.substr(i).starts_with(name)) return Replacement{name.size(), "%"};
  return std::nullopt;
}

// {,} with blanks around: a thousands separator.
std::optional<Replacement> match_braced_comma(std::string_view text, size_t i) {
  size_t k = skip_blanks(text, i);
  if (k >= text.size() || text[k] != '{') return std::nullopt;
  k = skip_blanks(text, k + 1);
  if (k >= text.size() || text[k] != ',') return std::nullopt;
  k = skip_blanks(text, k + 1);
  if (k >= text.size() || text[k] != '}') return std::nullopt;
  return Replacement{k + 1 - i, ","};
}

std::optional<Replacement> match_replacement(std::string_view text, size_t i) {
  const std::string_view rest = text.substr(i);
  // Only these characters begin a match.
  if (!is_blank(rest[0]) && std::string_view("\\{~,aoip").find(rest[0]) == std::string_view::npos)
    return std::nullopt;
  for (const std::string_view from :
       {"\\mathrm", "\\mathit", "\\mathbf", "\\textnormal", "\\textbf", "\\textit", "\\textrm"})
    if (rest.starts_with(from)) return Replacement{from.size(), "\\text"};
  for (const std::string_view from : {"\\dfrac", "\\tfrac", "\\cfrac"})
    if (rest.starts_with(from)) return Replacement{from.size(), "\\frac"};
  if (is_blank(rest[0]) && rest.size() > 1 && rest[1] == '.') return Replacement{2, " 0."};
  if (rest.starts_with("{.")) return Replacement{2, "{0."};
  if (rest.starts_with("~=")) return Replacement{2, "\\approx"};
  if (const auto found = match_braced_comma(text, i)) return found;
  if (const auto found = match_conjunction(text, i)) return found;
  if (rest.size() > 1 && rest[0] == '\\' && is_blank(rest[1]) && (i == 0 || text[i - 1] != '\\'))
    return Replacement{2, " "};
  if (rest.starts_with("infinity")) return Replacement{8, "\\infty"};
  if (rest.starts_with(",\\ldots")) return Replacement{7, " "};
  if (rest.starts_with("\\ldots")) return Replacement{6, " "};
  if (const auto found = match_percent_word(text, i)) return found;
  if (rest.starts_with("inf") && (i == 0 || text[i - 1] != '\\')) return Replacement{3, "\\infty"};
  if (rest.starts_with(" sqrt")) return Replacement{5, "\\sqrt"};
  return std::nullopt;
}

std::string apply_replacements(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (const auto found = match_replacement(text, i)) {
      result.append(found->text);
      i += found->length;
    } else {
      result.push_back(text[i++]);
    }
  }
  return result;
}

// (n)_{k}, the falling factorial: \frac{(n)!}{((n)-(k))!}
std::string expand_permutations(std::string_view text) {
  const auto is_inside = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("+-*/\\ ").find(c) != std::string_view::npos;
  };
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t close = i + 1;
    while (text[i] == '(' && close < text.size() && is_inside(text[close])) ++close;
    size_t end = close + 3;
    if (close > i + 1 && text.substr(close).starts_with(")_{")) {
      while (end < text.size() && is_inside(text[end])) ++end;
      if (end > close + 3 && end < text.size() && text[end] == '}') {
        const std::string n(text.substr(i + 1, close - i - 1)), k(text.substr(close + 3, end - close - 3));
        result += "\\frac{(" + n + ")!}{((" + n + ")-(" + k + "))!}";
        i = end + 1;
        continue;
      }
    }
    result.push_back(text[i++]);
  }
  return result;
}

// \\alpha -> \alpha, unless rows of a matrix are meant.
std::string undouble_backslashes(const std::string& text) {
  if (text.find("matrix") != std::string::npos) return text;
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "\\\\" && i + 2 < text.size() && is_letter(text[i + 2])) ++i;
    result.push_back(text[i]);
  }
  return result;
}

// Everything from the first \text{ or \mbox{ when the text ends with a brace, with or without a power behind
// it.
std::string delete_trailing_text(const std::string& text) {
  const size_t begin = std::min(text.find("\\text{"), text.find("\\mbox{"));
  if (begin == std::string::npos) return text;
  std::string_view body = text;
  const size_t n = body.size();
  if (n >= 3 && is_digit(body[n - 1]) && body[n - 2] == '^') body.remove_suffix(2);
  if (!body.ends_with('}') || body.size() < begin + 7) return text;
  const std::string shorter(strip(std::string_view(text).substr(0, begin)));
  return shorter.empty() ? text : shorter;
}

bool matches_unit(std::string_view text, std::string_view pattern) {
  size_t i = 0;
  for (const char c : pattern) {
    if (i >= text.size()) return false;
    if (c == '.') {
      i += character_bytes(text, i);
    } else if (text[i++] != c) {
      return false;
    }
  }
  return i == text.size();
}

bool is_unit(std::string_view text) {
  for (const std::string_view suffix : {"", "s", "es"}) {
    if (!text.ends_with(suffix)) continue;
    const std::string_view stem = text.substr(0, text.size() - suffix.size());
    for (const std::string_view unit : kUnitWords)
      if (matches_unit(stem, unit)) return true;
  }
  return false;
}

// One unit word at the end, behind a digit, a closing brace or a blank, which stays.
std::string delete_trailing_unit(const std::string& text) {
  constexpr size_t kLongestUnit = 24;
  std::string_view body = text;
  while (!body.empty() && is_blank(body.back())) body.remove_suffix(1);
  const size_t first = body.size() > kLongestUnit ? body.size() - kLongestUnit : 0;
  for (size_t i = first; i < body.size(); ++i) {
    if (!is_digit(body[i]) && body[i] != '}' && !is_blank(body[i])) continue;
    for (size_t unit = i + 1; unit < body.size(); ++unit) {
      if (is_unit(body.substr(unit))) return text.substr(0, i + 1);
      if (!is_blank(body[unit])) break;
    }
  }
  return text;
}

// name ( anything ) -> replacement{anything}, up to the first closing parenthesis.
std::string brace_parentheses(std::string_view text, std::string_view name, std::string_view replacement) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t open = i + name.size();
    if (text.substr(i).starts_with(name)) {
      if (open < text.size() && is_blank(text[open])) ++open;
      const size_t close =
          open < text.size() && text[open] == '(' ? text.find(')', open) : std::string_view::npos;
      if (close != std::string_view::npos) {
        result.append(replacement).append("{").append(text.substr(open + 1, close - open - 1)).append("}");
        i = close + 1;
        continue;
      }
    }
    result.push_back(text[i++]);
  }
  return result;
}

// name, digit, digits -> name{digit}{digits}
std::string brace_digits(std::string_view text, std::string_view name) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with(name)) {
      size_t k = i + name.size();
      if (k < text.size() && is_blank(text[k])) ++k;
      size_t second = k + 1;
      if (second < text.size() && is_blank(text[second])) ++second;
      if (k < text.size() && is_digit(text[k]) && second < text.size() && is_digit(text[second])) {
        size_t end = second;
        while (end < text.size() && is_digit(text[end])) ++end;
        result.append(name)
            .append("{")
            .append(text.substr(k, 1))
            .append("}{")
            .append(text.substr(second, end - second));
        result.append("}");
        i = end;
        continue;
      }
    }
    result.push_back(text[i++]);
  }
  return result;
}

struct Braced {
  std::string text;
  size_t end;  // of the text it replaces
};

// \frac{a}2 at i; the closing brace is the first with a digit behind it and may lie far off, as in the
// reference.
std::optional<Braced> match_fraction_with_last_digit(std::string_view text, size_t i) {
  size_t open = i + 5;
  if (open < text.size() && is_blank(text[open])) ++open;
  if (open >= text.size() || text[open] != '{') return std::nullopt;
  for (size_t close = text.find('}', open); close != std::string_view::npos;
       close = text.find('}', close + 1)) {
    size_t digit = close + 1;
    if (digit < text.size() && is_blank(text[digit])) ++digit;
    if (digit >= text.size() || !is_digit(text[digit])) continue;
    const std::string top(text.substr(open + 1, close - open - 1));
    return Braced{"\\frac{" + top + "}{" + text[digit] + "}", digit + 1};
  }
  return std::nullopt;
}

// \frac2{a} at i
std::optional<Braced> match_fraction_with_first_digit(std::string_view text, size_t i) {
  size_t digit = i + 5;
  if (digit < text.size() && is_blank(text[digit])) ++digit;
  if (digit >= text.size() || !is_digit(text[digit])) return std::nullopt;
  size_t open = digit + 1;
  if (open < text.size() && is_blank(text[open])) ++open;
  if (open >= text.size() || text[open] != '{') return std::nullopt;
  const size_t close = text.find('}', open);
  if (close == std::string_view::npos) return std::nullopt;
  const std::string bottom(text.substr(open + 1, close - open - 1));
  return Braced{std::string("\\frac{") + text[digit] + "}{" + bottom + "}", close + 1};
}

template <class Match>
std::string brace_half_fractions(std::string_view text, Match match) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const auto found = text.substr(i).starts_with("\\frac") ? match(text, i) : std::nullopt;
    if (found) {
      result += found->text;
      i = found->end;
    } else {
      result.push_back(text[i++]);
    }
  }
  return result;
}

std::string brace_square_roots(const std::string& text) {
  const auto parts = split(text, "\\sqrt");
  std::string result = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = strip_left(parts[i]);
    result += "\\sqrt";
    if (part.empty() || part[0] == '{' || part[0] == '[') {
      result += part;
    } else {
      const size_t bytes = character_bytes(part, 0);
      result.append("{").append(part.substr(0, bytes)).append("}").append(part.substr(bytes));
    }
  }
  return result;
}

std::string brace_fractions(const std::string& text) {
  const auto parts = split(text, "\\frac");
  std::string result = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = strip_left(parts[i]);
    result += "\\frac";
    if (part.starts_with('{')) {
      result += part;
      continue;
    }
    if (part.empty() || character_bytes(part, 0) == part.size()) return text;
    result += brace_two(part);
  }
  return result;
}

}  // namespace

std::string brace_shorthand(std::string_view latex) {
  std::string text = brace_parentheses(latex, "^", "^");
  text = brace_parentheses(text, "sqrt", "\\sqrt");
  for (const std::string_view name : {"\\frac", "\\binom", "\\log_"}) text = brace_digits(text, name);
  text = brace_half_fractions(text, match_fraction_with_last_digit);
  text = brace_half_fractions(text, match_fraction_with_first_digit);
  text = replace_all(text, " sqrt", "\\sqrt");
  text = brace_fractions(brace_square_roots(text));
  const auto parts = split(text, "/");
  if (parts.size() == 2 && is_plain_integer(parts[0]) && is_plain_integer(parts[1]))
    text = "\\frac{" + parts[0] + "}{" + parts[1] + "}";
  return std::string(strip(text));
}

std::string latex_normal_form(std::string_view latex, Units units) {
  std::string text = replace_all(latex, "\\mathrm{T}", "T");
  text = replace_all(replace_all(text, "\\mathrm{d}", "d"), "{\\rm d}", "d");
  text = replace_all(text, "\\left[\\begin{matrix}", "\\begin{bmatrix}");
  text = replace_all(text, "\\end{matrix}\\right]", "\\end{bmatrix}");
  text = expand_permutations(delete_delimiter_sizes(text));
  text = apply_replacements(delete_decoration(text));
  text = replace_all(replace_all(text, "\n", " "), "\t", " ");
  text = undouble_backslashes(text);
  if (units == Units::drop) {
    text = delete_trailing_text(text);
    for (int round = 0; round < 2; ++round) {
      const std::string shorter = delete_trailing_unit(text);
      if (!shorter.empty()) text = shorter;
    }
  }
  if (text.starts_with('.')) text = "0" + text;
  if (text == "0.5") text = "\\frac{1}{2}";
  return brace_shorthand(text);
}

std::string last_equation_side(const std::string& latex) {
  if (latex.find(',') != std::string::npos || latex.find(';') != std::string::npos) return latex;
  size_t parts = 1, last = 0;
  for (size_t i = 0; i < latex.size(); ++i) {
    const char before = i > 0 ? latex[i - 1] : ' ';
    if (latex[i] != '=' || before == '\\' || before == '<' || before == '!' || before == '>') continue;
    ++parts;
    last = i + 1;
  }
  return parts > 2 ? latex.substr(last) : latex;
}

}  // namespace ropd::grading
