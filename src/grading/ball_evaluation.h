// Evaluates an expression tree to an Arb ball, with values for its symbols. Unknown functions get a
// pseudo-random value that depends only on their name and the values of their arguments, so f(x) - f(x) is
// zero and f(x) - g(x) is not.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "grading/expression.h"

namespace ropd::grading {

using Bindings = std::map<std::string, Rational>;

// Remaining work of one comparison, shared by its evaluations.
struct Budget {
  int64_t steps = 20000;
};

// Nothing when a symbol is unbound, a value is not finite or too large (exponents beyond 2^30), or the budget
// is spent.
[[nodiscard]] std::optional<Ball> evaluate_ball(const Expression& node, const Bindings& bindings,
                                                int64_t precision, Budget& budget);

}  // namespace ropd::grading
