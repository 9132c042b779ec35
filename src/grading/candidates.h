// Which part of an answer is read as mathematics (stage 3). Formulas between $..$, \(..\), \[..\] and lone
// fractions are tried together with plain numbers and sums ("= 3+4"), those ending last first; the first that
// parses is the answer. Neighbouring formulas joined by a comma, "and" or "or" make one set.
#pragma once
#include <string_view>

#include "grading/expression.h"

namespace ropd::grading {

// The expression an answer stands for; null when nothing in it parses. A text without $ is taken as one
// formula.
[[nodiscard]] ExpressionRef parse_answer(std::string_view answer);

}  // namespace ropd::grading
