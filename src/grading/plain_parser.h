// Arithmetic as typed on a keyboard: 3*x^2/4, 2(n-1), sqrt(2), 5!. Two dialects:
//   symbolic  stage 2: letters are symbols, products may be implied, ** or ^ is a power, sqrt and pi are
//             known, a letter before a parenthesis is an unknown function
//   numeric   numbers and operators only, no implied products (plain expressions beside LaTeX in stage 3)
// Integers with leading zeros do not parse: the reference reads both dialects as Python.
#pragma once
#include <string_view>

#include "grading/expression.h"

namespace ropd::grading {

enum class PlainSyntax { symbolic, numeric };

// Null when the text is not of that form, is nested deeper than kMaxDepth or longer than 4,000 characters.
[[nodiscard]] ExpressionRef parse_plain(std::string_view text, PlainSyntax syntax);

}  // namespace ropd::grading
