// Whether two parsed answers mean the same (stage 3). The expected one sets the form: "x = 5" equals 5, an
// equation given where a value is expected counts by its right side, a comma list is a set, an open interval
// (a,b) may be a pair.
#pragma once
#include "grading/expression.h"

namespace ropd::grading {

enum class VerifyRules {
  reference,  // after Math-Verify: decimals to 6 places, sets equal tuples, any equation gives its right side
  strict      // decimals exact or correctly rounded from 6 digits on, names and kinds must agree
};

[[nodiscard]] bool verify(const ExpressionRef& given, const ExpressionRef& expected, VerifyRules rules);

}  // namespace ropd::grading
