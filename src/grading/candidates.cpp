#include "grading/candidates.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "grading/latex_normal_form.h"
#include "grading/latex_parser.h"
#include "grading/plain_parser.h"
#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

constexpr size_t kMaxCandidates = 50;
constexpr int kMaxJoined = 5;  // formulas behind the first

struct Formula {
  std::string latex;
  bool is_percent = false;
  size_t end = 0;
};

struct Candidate {
  size_t begin = 0, end = 0;
  std::function<ExpressionRef()> parse;
};

bool is_blank(char c) { return is_space(static_cast<unsigned char>(c)); }

bool is_escaped(std::string_view text, size_t index) { return index > 0 && text[index - 1] == '\\'; }

// The end of a -?\frac{number}{number} at `begin`, where it stands outside any formula; 0 when there is none.
size_t match_lone_fraction(std::string_view text, size_t begin) {
  size_t i = begin;
  if (i < text.size() && text[i] == '-') ++i;
  if (!text.substr(i).starts_with("\\frac")) return 0;
  i += 5;
  for (int part = 0; part < 2; ++part) {
    if (i >= text.size() || text[i++] != '{') return 0;
    if (i < text.size() && text[i] == '-') ++i;
    const size_t digits = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    if (i == digits) return 0;
    if (i + 1 < text.size() && (text[i] == '.' || text[i] == ',') && is_digit(text[i + 1])) {
      ++i;
      while (i < text.size() && is_digit(text[i])) ++i;
    }
    if (i >= text.size() || text[i++] != '}') return 0;
  }
  return i;
}

// The text between `open` at `begin` and the first unescaped `close` behind at least one character.
std::optional<Formula> match_between(std::string_view text, size_t begin, std::string_view open,
                                     std::string_view close, bool multiline) {
  if (!text.substr(begin).starts_with(open) || is_escaped(text, begin)) return std::nullopt;
  const size_t inside = begin + open.size();
  for (size_t end = text.find(close, inside + 1); end != std::string_view::npos;
       end = text.find(close, end + 1)) {
    if (is_escaped(text, end)) continue;
    const std::string_view latex = text.substr(inside, end - inside);
    if (!multiline && latex.find('\n') != std::string_view::npos) return std::nullopt;
    return Formula{std::string(latex), false, end + close.size()};
  }
  return std::nullopt;
}

std::optional<Formula> match_bare_environment(std::string_view text, size_t i) {
  if (auto found = match_between(text, i, "$$", "$$", true)) return found;
  if (auto found = match_between(text, i, "\\[", "\\]", true)) return found;
  if (text[i] == '$' && (i == 0 || !is_digit(text[i - 1])))
    if (auto found = match_between(text, i, "$", "$", false); found && found->latex.find('$') != 0)
      return found;
  if (auto found = match_between(text, i, "\\(", "\\)", false)) return found;
  if (is_blank(text[i]) && i + 1 < text.size() && text[i + 1] == '[') {
    const size_t close = text.find_first_of("][\n", i + 2);
    if (close != std::string_view::npos && close > i + 2 && text[close] == ']' && close + 1 < text.size() &&
        is_blank(text[close + 1]))
      return Formula{std::string(text.substr(i + 2, close - i - 2)), false, close + 2};
  }
  if (const size_t end = match_lone_fraction(text, i))
    return Formula{std::string(text.substr(i, end - i)), false, end};
  return std::nullopt;
}

// A percent sign or word at `i`; its end, or `i` where there is none.
size_t match_percent(std::string_view text, size_t i) {
  for (const std::string_view sign :
       {"\\%", "%", "percent", "Percent", "percentage", "Percentage", "pct", "Pct"})
    if (text.substr(i).starts_with(sign)) return i + sign.size();
  return i;
}

// A formula with a percent sign that may stand behind it.
std::optional<Formula> match_environment(std::string_view text, size_t i) {
  auto formula = match_bare_environment(text, i);
  if (!formula) return formula;
  size_t k = formula->end;
  while (k < text.size() && is_blank(text[k])) ++k;
  const size_t behind = match_percent(text, k);
  formula->is_percent = behind > k;
  formula->end = behind > k ? behind : k;
  return formula;
}

// Behind a comma, "and" or "or" between two formulas; nothing where there is none.
std::optional<size_t> match_joint(std::string_view text, size_t i) {
  while (i < text.size() && is_blank(text[i])) ++i;
  for (const std::string_view joint : {",and", "and", ",or", "or", ","}) {
    if (!text.substr(i).starts_with(joint)) continue;
    i += joint.size();
    while (i < text.size() && is_blank(text[i])) ++i;
    return i;
  }
  return std::nullopt;
}

ExpressionRef parse_formula(const Formula& formula) {
  const std::string latex = latex_normal_form(formula.latex);
  auto result = parse_latex_or_number(latex, LatexDialect::reference);
  if (!result) {
    const std::string side = last_equation_side(latex);
    if (side != latex) result = parse_latex_or_number(side, LatexDialect::reference);
  }
  return result && formula.is_percent ? make_node(Kind::percent, {result}) : result;
}

ExpressionRef parse_formulas(const std::vector<Formula>& formulas) {
  std::vector<ExpressionRef> parsed;
  for (const auto& formula : formulas) parsed.push_back(parse_formula(formula));
  const bool all_parsed =
      std::all_of(parsed.begin(), parsed.end(), [](const auto& p) { return p != nullptr; });
  if (parsed.size() == 1 || !all_parsed) return parsed[0];
  std::vector<ExpressionRef> members;
  for (const auto& one : parsed) {
    if (one->kind == Kind::finite_set) {
      members.insert(members.end(), one->children.begin(), one->children.end());
    } else {
      members.push_back(one);
    }
  }
  return make_set(members);
}

void find_formulas(std::vector<Candidate>& out, std::string_view text) {
  for (size_t i = 0; i < text.size() && out.size() < kMaxCandidates;) {
    auto first = match_environment(text, i);
    if (!first) {
      ++i;
      continue;
    }
    std::vector<Formula> formulas = {std::move(*first)};
    while (formulas.size() <= kMaxJoined) {
      const auto joint = match_joint(text, formulas.back().end);
      if (!joint || *joint >= text.size()) break;
      auto next = match_environment(text, *joint);
      if (!next) break;
      formulas.push_back(std::move(*next));
    }
    const size_t end = formulas.back().end;
    out.push_back({i, end, [formulas] { return parse_formulas(formulas); }});
    i = end;
  }
}

// Where a plain number or sum may begin: the start, behind a blank or "=", optionally behind **.
std::optional<size_t> match_anchor(std::string_view text, size_t i, bool at_start) {
  size_t k = i;
  if (!at_start) {
    if (!is_blank(text[i]) && text[i] != '=') return std::nullopt;
    ++k;
  }
  if (text.substr(std::min(k, text.size())).starts_with("**")) k += 2;
  return k;
}

struct PlainNumber {
  std::string text;
  bool is_decimal = false, is_percent = false;
  size_t end = 0;
};

size_t skip_digits(std::string_view text, size_t i) {
  while (i < text.size() && is_digit(text[i])) ++i;
  return i;
}

// 1,234.5  12.5  12,5  .5  12, with an optional minus and percent sign.
std::optional<PlainNumber> match_number(std::string_view text, size_t begin) {
  size_t i = begin;
  if (i > 0 && is_digit(text[i - 1])) return std::nullopt;
  PlainNumber number;
  const auto is_digit_at = [&](size_t k) { return k < text.size() && is_digit(text[k]); };
  if (i < text.size() && text[i] == '-') number.text = "-", ++i;
  const size_t whole = skip_digits(text, i);
  if (whole == i) {
    if (number.text == "-" || !(i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])))
      return std::nullopt;
    const size_t end = skip_digits(text, i + 1);
    number = {"0" + std::string(text.substr(i, end - i)), true, false, end};
  } else {
    size_t grouped = i;
    if (text[i] != '0') {
      // One to three digits, then groups of three.
      for (size_t lead = std::min(whole, i + 3); lead > i; --lead) {
        size_t k = lead;
        while (k < text.size() && (text[k] == ',' || text[k] == ' ') && is_digit_at(k + 1) &&
               is_digit_at(k + 2) && is_digit_at(k + 3))
          k += 4;
        if (k > lead) {
          grouped = k;
          break;
        }
      }
    }
    const size_t end = grouped > i ? grouped : whole;
    for (const char c : text.substr(i, end - i))
      if (is_digit(c)) number.text.push_back(c);
    number.end = end;
    const bool comma_allowed = grouped == i;
    if (end < text.size() && (text[end] == '.' || (comma_allowed && text[end] == ',')) &&
        is_digit_at(end + 1)) {
      number.end = skip_digits(text, end + 1);
      number.text.append(".").append(text.substr(end + 1, number.end - end - 1));
      number.is_decimal = true;
    }
  }
  size_t behind = number.end;
  while (behind < text.size() && is_blank(text[behind])) ++behind;
  if (const size_t end = match_percent(text, behind); end > behind) {
    number.is_percent = true;
    number.end = end;
  }
  return number;
}

ExpressionRef make_plain_number(const PlainNumber& number) {
  const bool is_negative = number.text.starts_with('-');
  auto value = Rational::from_decimal(std::string_view(number.text).substr(is_negative ? 1 : 0));
  if (!value) return nullptr;
  auto result = make_number(is_negative ? -*value : *value, number.is_decimal);
  return number.is_percent ? make_node(Kind::percent, {result}) : result;
}

size_t currency_bytes(std::string_view text, size_t i) {
  if (i >= text.size()) return 0;
  if (text[i] == '$') return 1;
  const uint32_t c = code_point(text, i);
  return c == 0xA3 || c == 0xA5 || c == 0xE3F || (c >= 0x20A0 && c <= 0x20BF) ? character_bytes(text, i) : 0;
}

void find_numbers(std::vector<Candidate>& out, std::string_view text) {
  const size_t limit = out.size() + kMaxCandidates;
  for (size_t i = 0; i < text.size() && out.size() < limit;) {
    size_t next = i + 1;
    for (const bool at_start : {true, false}) {
      if (at_start && i != 0) continue;
      const auto anchor = match_anchor(text, i, at_start);
      if (!anchor) continue;
      auto number = match_number(text, *anchor + currency_bytes(text, *anchor));
      if (!number && currency_bytes(text, *anchor) > 0) number = match_number(text, *anchor);
      if (!number) continue;
      next = number->end;
      out.push_back({i, number->end, [number = *number] { return make_plain_number(number); }});
      break;
    }
    i = next;
  }
}

bool is_sum_character(std::string_view text, size_t i) {
  return is_digit(text[i]) || is_blank(text[i]) ||
         std::string_view(".+-*/^()").find(text[i]) != std::string_view::npos;
}

// digits and operators, as long as possible, followed by punctuation or the end.
std::optional<Candidate> match_sum(std::string_view text, size_t match_begin, size_t begin) {
  size_t i = begin;
  if (i < text.size() && text[i] == '-') ++i;
  if (i < text.size() && text[i] == '(') ++i;
  if (i < text.size() && text[i] == '-') ++i;
  if (i >= text.size() || !is_digit(text[i])) return std::nullopt;
  const size_t first = i + 1;
  size_t run = first;
  while (run < text.size() && is_sum_character(text, run)) ++run;
  for (size_t end = run; end > first + 1; --end) {
    const bool has_operator =
        text.substr(first, end - 1 - first).find_first_of("+-*/^()") != std::string_view::npos;
    if (!has_operator) return std::nullopt;
    size_t behind = end;
    if (text.substr(behind).starts_with("**")) behind += 2;
    const bool closes = behind == text.size() || is_blank(text[behind]) ||
                        std::string_view(".,:)$").find(text[behind]) != std::string_view::npos;
    if (!closes) continue;
    const std::string sum(text.substr(begin, end - begin));
    return Candidate{match_begin, std::min(behind + 1, text.size()),
                     [sum] { return parse_plain(replace_all(sum, "\n", " "), PlainSyntax::numeric); }};
  }
  return std::nullopt;
}

void find_sums(std::vector<Candidate>& out, std::string_view text) {
  const size_t limit = out.size() + kMaxCandidates;
  for (size_t i = 0; i < text.size() && out.size() < limit;) {
    size_t next = i + 1;
    for (const bool at_start : {true, false}) {
      if (at_start && i != 0) continue;
      const auto anchor = match_anchor(text, i, at_start);
      if (!anchor) continue;
      const auto found = match_sum(text, i, *anchor);
      if (!found) continue;
      next = std::max(found->end, i + 1);
      out.push_back(*found);
      break;
    }
    i = next;
  }
}

}  // namespace

ExpressionRef parse_answer(std::string_view answer) {
  const std::string text =
      answer.find('$') == std::string_view::npos ? "$" + std::string(answer) + "$" : std::string(answer);
  std::vector<Candidate> candidates;
  find_formulas(candidates, text);
  find_sums(candidates, text);
  find_numbers(candidates, text);
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.end != b.end ? a.end > b.end : a.begin < b.begin;
  });
  for (const auto& candidate : candidates)
    if (auto result = candidate.parse()) return result;
  return nullptr;
}

}  // namespace ropd::grading
