// LaTeX -> expression tree, after the grammar of the reference's parser (latex2sympy2_extended): comma lists
// are sets, (a,b) is an open interval, or a tuple where it would be empty, longer parentheses are tuples, x^n
// binds to one atom, functions without parentheses take the whole following product. Ambiguous text is read
// as the first of: "name = list", list of elements, set expression. Recursive descent with memory of failed
// attempts, so the work is bounded by tokens times rules; a step budget bounds the rest.
#pragma once
#include <string_view>

#include "grading/expression.h"

namespace ropd::grading {

enum class LatexDialect {
  reference,  // letters fold to small ones, 10101_2 is 10101, 4 2 is 4 + 2 (a mixed number), i is a symbol
  strict      // case is kept, 10101_2 is 21, 4 2 does not parse, 1.5e3 is 1500, i is the imaginary unit
};

// Null when the text is not of the grammar.
[[nodiscard]] ExpressionRef parse_latex(std::string_view latex, LatexDialect dialect);

// The same, but 12,345 (groups of three without blanks) is one number instead of a set of two.
[[nodiscard]] ExpressionRef parse_latex_or_number(std::string_view latex, LatexDialect dialect);

}  // namespace ropd::grading
