#include "grading/strict.h"

#include "grading/latex_normal_form.h"
#include "grading/latex_parser.h"
#include "grading/text_scan.h"
#include "grading/verify.h"

namespace ropd::grading {
namespace {

// Words without dollars, \text, blanks, parentheses and a final dot, in small letters; empty when it is not
// just words.
std::string words_of(std::string_view answer) {
  std::string text(answer);
  for (const char* removed : {"\\text", "\\mathrm", "\\textbf", "$", "{", "}", "(", ")", " ", "~"})
    text = replace_all(text, removed, "");
  if (text.ends_with('.')) text.pop_back();
  for (const char c : text)
    if (!is_letter(c)) return "";
  return text;
}

// cm, centimetres and plural forms are not unified; blanks, case and a plural s are.
std::string unit_key(std::string_view unit) {
  std::string key = to_lower(replace_all(replace_all(unit, " ", ""), "~", ""));
  if (key.size() > 2 && key.ends_with('s')) key.pop_back();
  return key;
}

// \text{...} around the whole answer goes, unless it is the first of several groups.
std::string_view without_text_group(std::string_view answer) {
  answer = strip(answer);
  const auto inside = whole_text_group(answer);
  if (!inside) return answer;
  int depth = 0;
  for (const char c : *inside) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth < 0) return answer;
  }
  return strip(*inside);
}

}  // namespace

Quantity split_unit(std::string_view answer) {
  std::string text(strip(answer));
  std::string power;
  if (text.size() > 3 && text[text.size() - 2] == '^' && is_digit(text.back())) {
    power = text.substr(text.size() - 2);
  } else if (text.size() > 5 && text.ends_with('}') && text[text.size() - 4] == '^' &&
             is_digit(text[text.size() - 2])) {
    power = std::string("^") + text[text.size() - 2];
  }
  const size_t power_bytes = power.empty() ? 0 : text.ends_with('}') ? 4 : 2;
  const std::string_view body = std::string_view(text).substr(0, text.size() - power_bytes);
  if (body.ends_with('}')) {
    for (const std::string_view command : {"\\text{", "\\mathrm{", "\\mbox{", "\\textrm{"}) {
      const size_t begin = body.rfind(command);
      if (begin == std::string_view::npos || body.find('}', begin) != body.size() - 1) continue;
      const std::string_view value = strip(body.substr(0, begin));
      const std::string_view unit =
          strip(body.substr(begin + command.size(), body.size() - 1 - begin - command.size()));
      // A unit follows a number; "2 \text{ or } 3" has none at its end, and words alone are the answer.
      if (value.empty() || (!is_digit(value.back()) && value.back() != '}' && value.back() != ')')) continue;
      return {std::string(value), std::string(unit) + power};
    }
  }
  for (const std::string_view degree : {"^\\circ", "^{\\circ}", "°"})
    if (text.ends_with(degree))
      return {std::string(strip(text.substr(0, text.size() - degree.size()))), "degree"};
  return {text, ""};
}

bool equivalent_strictly(std::string_view given_answer, std::string_view expected_answer) {
  const std::string_view given = without_text_group(given_answer),
                         expected = without_text_group(expected_answer);
  if (given == expected) return true;
  const std::string given_words = words_of(given), expected_words = words_of(expected);
  if (given_words.size() > 1 && expected_words.size() > 1)
    return to_lower(given_words) == to_lower(expected_words);
  if (given_words.size() == 1 && expected_words.size() == 1) return given_words == expected_words;
  const Quantity left = split_unit(given), right = split_unit(expected);
  // A missing unit is forgiven, a different one is not.
  if (!left.unit.empty() && !right.unit.empty() && unit_key(left.unit) != unit_key(right.unit)) return false;
  const auto parse = [](const std::string& value) {
    return parse_latex_or_number(latex_normal_form(value, Units::keep), LatexDialect::strict);
  };
  const auto gold = parse(right.value);
  if (!gold) return false;
  const auto pred = parse(left.value);
  return pred && verify(pred, gold, VerifyRules::strict);
}

}  // namespace ropd::grading
