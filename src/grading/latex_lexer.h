// Tokens of mathematical LaTeX. As in the reference's grammar, commands are found by the longest known name,
// not by the run of letters (\pix is \pi x), white space and spacing commands vanish, and text it does not
// know ends the reading.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ropd::grading {

enum class TokenKind {
  number,      // 12, 1.5, .5
  percent,     // 12%; text is the number
  scientific,  // 1E3
  letter,      // any Latin letter except e and E
  small_e,
  capital_e,
  greek,         // text is the name: alpha
  other_symbol,  // \angle, \ell, ...; text is the name
  accent,        // \text{..}, \bar{..}: text is the symbol it stands for
  differential,  // d x; text is the variable
  infinity,
  partial,
  plus,
  minus,
  times,
  divide,
  modulo,
  caret,
  underscore,
  comma,
  semicolon,
  bang,
  bar,
  ampersand,
  row_end,
  open_parenthesis,
  close_parenthesis,
  open_bracket,
  close_bracket,
  open_brace,
  close_brace,
  open_set,
  close_set,  // \{ \}
  open_floor,
  close_floor,
  open_ceil,
  close_ceil,
  degree,
  transpose,
  function,        // text: sin, log, ...
  multi_function,  // gcd, lcm, max, min
  square_root,
  fraction,
  binomial,
  choose,
  operator_name,
  series,  // sum, prod
  limit,
  arrow,
  integral,
  begin_matrix,
  end_matrix,
  begin_determinant,
  end_determinant,
  element_of,
  not_element_of,
  set_union,
  set_intersection,
  set_minus,
  plus_minus,
  empty_set,
  named_set,
  relation,  // text: = < <= > >= !=
  approximately,
  reserved  // names such as tr or rank, which stand only inside \operatorname{}
};

struct Token {
  TokenKind kind;
  std::string text;      // see the kinds
  std::string spelling;  // as written
};

// Nothing when some text is no token, or there are more than 2,000.
[[nodiscard]] std::optional<std::vector<Token>> tokenize_latex(std::string_view latex);

}  // namespace ropd::grading
