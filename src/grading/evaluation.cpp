#include "grading/evaluation.h"

#include "grading/ball_evaluation.h"

namespace ropd::grading {
namespace {

constexpr int64_t kMaxBits = 20000;  // of exact numbers
constexpr uint64_t kMaxFactorial = 1500;
constexpr int64_t kFirstPrecision = 128, kLastPrecision = 8192;  // bits
constexpr int64_t kProofPrecision = 512;
constexpr int kMaxPoints = 10;
constexpr int kPointsNeeded = 3;

std::optional<Rational> bounded(Rational value) {
  if (value.bits() > kMaxBits) return std::nullopt;
  return value;
}

std::optional<Rational> exact_power(const Rational& base, const Rational& exponent) {
  if (const auto whole = exponent.as_int64()) return Rational::power(base, *whole, kMaxBits);
  // base^(p/q) with a rational q-th root, as in 16^(1/2).
  Rational top, bottom;
  fmpz_set(fmpq_numref(top.raw()), fmpq_numref(exponent.raw()));
  fmpz_set(fmpq_numref(bottom.raw()), fmpq_denref(exponent.raw()));
  const auto p = top.as_int64(), q = bottom.as_int64();
  if (!p || !q || *q > 64) return std::nullopt;
  const auto root = Rational::root(base, static_cast<uint64_t>(*q));
  return root ? Rational::power(*root, *p, kMaxBits) : std::nullopt;
}

std::optional<Rational> exact_function(const std::string& name, const std::vector<Rational>& values) {
  const Rational& first = values[0];
  const auto n = first.as_int64();
  if (name == "abs") return first.sign() < 0 ? -first : first;
  if (name == "floor") return Rational::floor(first);
  if (name == "ceil") return -Rational::floor(-first);
  if (name == "factorial" && n && *n >= 0 && *n <= static_cast<int64_t>(kMaxFactorial))
    return Rational::factorial(static_cast<uint64_t>(*n));
  if (name == "gamma" && n && *n >= 1 && *n <= static_cast<int64_t>(kMaxFactorial))
    return Rational::factorial(static_cast<uint64_t>(*n - 1));
  if (values.size() == 2) {
    const auto k = values[1].as_int64();
    if (name == "binomial" && n && k && *n >= 0 && *n <= 10000)
      return *k < 0 || *k > *n ? Rational(0)
                               : Rational::binomial(static_cast<uint64_t>(*n), static_cast<uint64_t>(*k));
    if (name == "mod" && !values[1].is_zero()) return first - values[1] * Rational::floor(first / values[1]);
  }
  if (name != "max" && name != "min" && name != "gcd" && name != "lcm") return std::nullopt;
  Rational result = first;
  for (const Rational& value : values) {
    if (name == "max" && result < value) result = value;
    if (name == "min" && value < result) result = value;
    if (name != "gcd" && name != "lcm") continue;
    if (!result.is_integer() || !value.is_integer()) return std::nullopt;
    const Rational divisor = Rational::gcd(result, value);
    if (name == "lcm" && divisor.is_zero()) return std::nullopt;
    result = name == "gcd" ? divisor : result / divisor * value;
  }
  return result;
}

std::optional<Rational> evaluate_rational(const Expression& node, int64_t& steps) {
  if (--steps < 0) return std::nullopt;
  if (node.kind == Kind::number) return bounded(node.value);
  std::vector<Rational> values;
  switch (node.kind) {
    case Kind::add:
    case Kind::multiply:
    case Kind::power:
    case Kind::function:
    case Kind::percent:
      break;
    default:
      return std::nullopt;
  }
  for (const auto& child : node.children) {
    auto value = evaluate_rational(*child, steps);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  if (values.empty()) return std::nullopt;
  if (node.kind == Kind::percent) return values[0] / Rational(100);
  if (node.kind == Kind::power) return exact_power(values[0], values[1]);
  if (node.kind == Kind::function) return exact_function(node.name, values);
  Rational total = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    total = node.kind == Kind::add ? total + values[i] : total * values[i];
    if (total.bits() > kMaxBits) return std::nullopt;
  }
  return total;
}

bool contains_unknown(const Expression& node) {
  if (node.kind == Kind::symbol || node.kind == Kind::call || node.kind == Kind::opaque) return true;
  if (node.kind == Kind::series) return true;
  for (const auto& child : node.children)
    if (contains_unknown(*child)) return true;
  return false;
}

enum class Difference { zero, nonzero, undecided };

// The difference of two values at one point. Precision doubles until it is proven nonzero or is smaller than
// 2^-60 in absolute terms, however large the values are (2^1000 + 1 is not 2^1000); `small` tells that it is
// below 1e-15.
Difference difference(const Expression& left, const Expression& right, const Bindings& bindings,
                      Budget& budget, bool* small) {
  for (int64_t precision = kFirstPrecision; precision <= kLastPrecision; precision *= 4) {
    const auto a = evaluate_ball(left, bindings, precision, budget);
    if (!a) return Difference::undecided;
    const auto b = evaluate_ball(right, bindings, precision, budget);
    if (!b) return Difference::undecided;
    Ball gap;
    acb_sub(gap.raw(), a->raw(), b->raw(), precision);
    if (small) *small = gap.is_below_power_of_two(-50);  // 2^-50 = 0.9e-15
    if (!gap.contains_zero()) return Difference::nonzero;
    if (gap.is_below_power_of_two(-60)) return Difference::zero;
  }
  return Difference::undecided;
}

bool are_equal_constants(const Expression& left, const Expression& right, Tolerance tolerance) {
  int64_t steps = 5000;
  if (const auto a = evaluate_rational(left, steps))
    if (const auto b = evaluate_rational(right, steps)) {
      if (*a == *b) return true;
      const Rational gap = *a < *b ? *b - *a : *a - *b;
      return tolerance == Tolerance::chop && gap * Rational(int64_t{1'000'000'000'000'000}) < Rational(1);
    }
  Budget budget;
  bool small = false;
  const Difference result = difference(left, right, {}, budget, &small);
  if (result == Difference::nonzero) return small && tolerance == Tolerance::chop;
  if (result == Difference::undecided) return false;
  if (tolerance == Tolerance::chop) return true;
  // Zero to 2^-60; equal only if it stays zero at high precision.
  const auto a = evaluate_ball(left, {}, kProofPrecision, budget),
             b = evaluate_ball(right, {}, kProofPrecision, budget);
  if (!a || !b) return false;
  Ball gap;
  acb_sub(gap.raw(), a->raw(), b->raw(), kProofPrecision);
  return gap.contains_zero();
}

uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

// Fixed points: positive ones first, then both signs, so that sqrt(x^2) is not taken for x.
Bindings make_point(const std::set<std::string>& names, int index) {
  uint64_t state = 0x0B5E55ED + static_cast<uint64_t>(index);
  Bindings point;
  for (const auto& name : names) {
    const uint64_t random = next_random(state);
    const auto size = static_cast<int64_t>(200 + random % 2800);
    point.emplace(name, Rational(index % 2 == 1 && (random >> 40) % 2 == 1 ? -size : size, 1009));
  }
  return point;
}

std::set<std::string> symbols_of_both(const Expression& left, const Expression& right) {
  auto names = free_symbols(left);
  names.merge(free_symbols(right));
  return names;
}

}  // namespace

std::optional<Rational> evaluate_exactly(const Expression& node) {
  int64_t steps = 5000;
  return evaluate_rational(node, steps);
}

bool are_equal_values(const ExpressionRef& left, const ExpressionRef& right, Tolerance tolerance) {
  if (structure_key(*left) == structure_key(*right)) return true;
  if (!contains_unknown(*left) && !contains_unknown(*right))
    return are_equal_constants(*left, *right, tolerance);
  const auto names = symbols_of_both(*left, *right);
  if (names.size() > 64) return false;
  Budget budget;
  int agreeing = 0;
  for (int index = 0; index < kMaxPoints; ++index) {
    switch (difference(*left, *right, make_point(names, index), budget, nullptr)) {
      case Difference::nonzero:
        return false;
      case Difference::zero:
        if (++agreeing >= kPointsNeeded + 1) return true;
        break;
      case Difference::undecided:
        break;
    }
  }
  return agreeing >= kPointsNeeded;
}

std::optional<int> compare_reals(const ExpressionRef& left, const ExpressionRef& right) {
  const auto infinite_sign = [](const Expression& node) {
    if (node.kind == Kind::infinity) return 1;
    if (node.kind == Kind::multiply && node.children.size() == 2 &&
        node.children[1]->kind == Kind::infinity && node.children[0]->kind == Kind::number)
      return node.children[0]->value.sign();
    return 0;
  };
  const int a = infinite_sign(*left), b = infinite_sign(*right);
  if (a != 0 || b != 0) return a == b ? 0 : a < b ? -1 : 1;
  if (contains_unknown(*left) || contains_unknown(*right)) return std::nullopt;
  if (are_equal_constants(*left, *right, Tolerance::exact)) return 0;
  Budget budget;
  for (const int64_t precision : {kFirstPrecision, kProofPrecision}) {
    const auto x = evaluate_ball(*left, {}, precision, budget),
               y = evaluate_ball(*right, {}, precision, budget);
    if (!x || !y || !acb_is_real(x->raw()) || !acb_is_real(y->raw())) return std::nullopt;
    if (arb_lt(acb_realref(x->raw()), acb_realref(y->raw()))) return -1;
    if (arb_gt(acb_realref(x->raw()), acb_realref(y->raw()))) return 1;
  }
  return std::nullopt;
}

std::optional<std::string> rounded_text(const Expression& node, int decimals) {
  if (contains_unknown(node)) return std::nullopt;
  const auto scale = Rational::power(Rational(10), decimals, kMaxBits);
  const auto half = Rational(1, 2);
  if (const auto exact = evaluate_exactly(node)) {
    const Rational size = exact->sign() < 0 ? -*exact : *exact;
    const Rational rounded = Rational::floor(size * *scale + half);
    return (exact->sign() < 0 ? -rounded : rounded).text();
  }
  Budget budget;
  auto value = evaluate_ball(node, {}, 256, budget);
  if (!value || !value->is_below_power_of_two(2000)) return std::nullopt;
  std::string text;
  for (arb_struct* part : {acb_realref(value->raw()), acb_imagref(value->raw())}) {
    arb_mul_fmpz(part, part, fmpq_numref(scale->raw()), 4096);
    fmpz_t nearest;
    fmpz_init(nearest);
    arf_get_fmpz(nearest, arb_midref(part), ARF_RND_NEAR);
    char* digits = fmpz_get_str(nullptr, 10, nearest);
    if (part == acb_realref(value->raw())) {
      text = digits;
    } else if (!fmpz_is_zero(nearest)) {
      text += std::string("i") + digits;
    }
    flint_free(digits);
    fmpz_clear(nearest);
  }
  return text;
}

std::optional<int> proportionality_sign(const ExpressionRef& left, const ExpressionRef& right) {
  const auto names = symbols_of_both(*left, *right);
  if (names.empty() || names.size() > 64) return std::nullopt;
  Budget budget;
  std::optional<Ball> ratio;
  int agreeing = 0;
  for (int index = 0; index < kMaxPoints && agreeing <= kPointsNeeded; ++index) {
    const Bindings point = make_point(names, index);
    auto a = evaluate_ball(*left, point, 128, budget);
    auto b = evaluate_ball(*right, point, 128, budget);
    if (!a || !b || b->contains_zero() || a->contains_zero()) continue;
    acb_div(a->raw(), a->raw(), b->raw(), 128);
    if (!acb_is_real(a->raw())) return std::nullopt;
    if (ratio) {
      Ball gap;
      acb_sub(gap.raw(), a->raw(), ratio->raw(), 128);
      if (!gap.contains_zero() || !gap.is_below_power_of_two(-60)) return std::nullopt;
    }
    ratio = std::move(a);
    ++agreeing;
  }
  if (agreeing < kPointsNeeded) return std::nullopt;
  return arb_is_positive(acb_realref(ratio->raw())) ? 1 : -1;
}

}  // namespace ropd::grading
