// Equality of values. Constants: exact rationals where both are rational, else Arb balls whose precision
// grows from 128 bits until the difference is proven nonzero or is below 2^-60, and then must still contain
// zero at 512 bits. Expressions with symbols: the same at fixed pseudo-random rational points, so an identity
// is refuted by proof and accepted with an error probability that is negligible. Every evaluation has a step
// budget; exceeding it means "not equal".
#pragma once
#include <optional>

#include "grading/expression.h"

namespace ropd::grading {

// chop: constants closer than 1e-15 are equal, as in the reference's numerical comparison.
enum class Tolerance { exact, chop };

[[nodiscard]] bool are_equal_values(const ExpressionRef& left, const ExpressionRef& right,
                                    Tolerance tolerance);

// The rational value of a constant expression, when it is rational and small enough (20,000 bits).
[[nodiscard]] std::optional<Rational> evaluate_exactly(const Expression& node);

// Sign of left - right for real constants (infinities included); nothing when it cannot be decided.
[[nodiscard]] std::optional<int> compare_reals(const ExpressionRef& left, const ExpressionRef& right);

// A constant rounded to so many decimals, real and imaginary part as text; nothing when it has no value.
[[nodiscard]] std::optional<std::string> rounded_text(const Expression& node, int decimals);

// The sign of c where left = c * right for one real constant c != 0 at all points; nothing otherwise.
[[nodiscard]] std::optional<int> proportionality_sign(const ExpressionRef& left, const ExpressionRef& right);

}  // namespace ropd::grading
