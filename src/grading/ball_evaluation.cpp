#include "grading/ball_evaluation.h"

#include <acb_hypgeom.h>

#include <unordered_map>

#include "grading/evaluation.h"

namespace ropd::grading {
namespace {

constexpr int64_t kMaxExponentBits = 30;  // exp(2^30) is as large as we go
constexpr int64_t kMaxTerms = 2000;       // of a sum or product

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  hash *= 0xBF58476D1CE4E5B9u;
  return hash ^ hash >> 31;
}

uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

// A number in (1, 2) that stands for an unknown value.
Ball pseudo_random(uint64_t hash, int64_t precision) {
  return Ball(Rational(static_cast<int64_t>(hash >> 24) + (int64_t{1} << 40), uint64_t{1} << 40), precision);
}

using UnaryFunction = void (*)(acb_t, const acb_t, slong);

UnaryFunction find_unary(const std::string& name) {
  static const std::unordered_map<std::string, UnaryFunction> table = {
      {"sin", acb_sin},     {"cos", acb_cos},     {"tan", acb_tan},     {"cot", acb_cot},
      {"sec", acb_sec},     {"csc", acb_csc},     {"asin", acb_asin},   {"acos", acb_acos},
      {"atan", acb_atan},   {"sinh", acb_sinh},   {"cosh", acb_cosh},   {"tanh", acb_tanh},
      {"asinh", acb_asinh}, {"acosh", acb_acosh}, {"atanh", acb_atanh}, {"gamma", acb_gamma},
      {"log", acb_log},     {"coth", acb_coth}};
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

constexpr int64_t kNoBound = INT64_MIN;

// A small integer bound of a sum or product, else kNoBound.
int64_t series_bound(const Expression& node) {
  const auto value = evaluate_exactly(node);
  if (!value || !value->is_integer() || value->bits() > 30) return kNoBound;
  return value->as_int64().value_or(kNoBound);
}

class BallEvaluator {
 public:
  BallEvaluator(const Bindings& bindings, int64_t precision, Budget& budget)
      : bindings_(bindings), precision_(precision), budget_(budget) {}

  std::optional<Ball> run(const Expression& node) {
    if (--budget_.steps < 0) return std::nullopt;
    auto result = run_kind(node);
    if (result && !result->is_finite()) return std::nullopt;
    return result;
  }

 private:
  const Bindings& bindings_;
  int64_t precision_;
  Budget& budget_;
  std::map<std::string, Rational> bound_;  // variables of sums and products

  std::optional<Ball> run_kind(const Expression& node) {
    Ball result;
    switch (node.kind) {
      case Kind::number:
        return Ball(node.value, precision_);
      case Kind::percent:
        return percent(node);
      case Kind::symbol:
        return symbol(node.name);
      case Kind::pi:
        acb_const_pi(result.raw(), precision_);
        return result;
      case Kind::euler:
        arb_const_e(acb_realref(result.raw()), precision_);
        return result;
      case Kind::imaginary:
        acb_onei(result.raw());
        return result;
      case Kind::add:
      case Kind::multiply:
        return fold(node);
      case Kind::power:
        return power(node);
      case Kind::function:
        return function(node);
      case Kind::call:
        return call(node);
      case Kind::series:
        return series(node);
      case Kind::opaque:
        return pseudo_random(hash_text(structure_key(node)), precision_);
      default:
        return std::nullopt;
    }
  }

  std::optional<Ball> symbol(const std::string& name) {
    if (const auto inner = bound_.find(name); inner != bound_.end()) return Ball(inner->second, precision_);
    const auto found = bindings_.find(name);
    if (found == bindings_.end()) return std::nullopt;
    return Ball(found->second, precision_);
  }

  std::optional<Ball> percent(const Expression& node) {
    auto value = run(*node.children[0]);
    if (value) acb_div_ui(value->raw(), value->raw(), 100, precision_);
    return value;
  }

  std::optional<Ball> fold(const Expression& node) {
    const bool is_sum = node.kind == Kind::add;
    Ball total(Rational(is_sum ? 0 : 1), precision_);
    for (const auto& child : node.children) {
      const auto value = run(*child);
      if (!value) return std::nullopt;
      if (is_sum) {
        acb_add(total.raw(), total.raw(), value->raw(), precision_);
      } else {
        acb_mul(total.raw(), total.raw(), value->raw(), precision_);
      }
    }
    return total;
  }

  std::optional<Ball> exponential(Ball exponent) {
    if (!exponent.is_below_power_of_two(kMaxExponentBits)) return std::nullopt;
    acb_exp(exponent.raw(), exponent.raw(), precision_);
    return exponent;
  }

  std::optional<Ball> power(const Expression& node) {
    auto exponent = run(*node.children[1]);
    if (!exponent) return std::nullopt;
    if (node.children[0]->kind == Kind::euler) return exponential(std::move(*exponent));
    auto base = run(*node.children[0]);
    if (!base) return std::nullopt;
    if (acb_is_zero(base->raw())) {
      if (acb_is_zero(exponent->raw())) return Ball(Rational(1), precision_);
      return arb_is_positive(acb_realref(exponent->raw())) ? std::optional(Ball()) : std::nullopt;
    }
    if (acb_is_int(exponent->raw()) && exponent->is_below_power_of_two(20)) {
      const slong n = arf_get_si(arb_midref(acb_realref(exponent->raw())), ARF_RND_NEAR);
      acb_pow_si(base->raw(), base->raw(), n, precision_);
      return base;
    }
    Ball logarithm;
    acb_log(logarithm.raw(), base->raw(), precision_);
    acb_mul(logarithm.raw(), logarithm.raw(), exponent->raw(), precision_);
    return exponential(std::move(logarithm));
  }

  std::optional<Ball> function(const Expression& node) {
    if (node.name == "gcd" || node.name == "lcm") {
      const auto exact = evaluate_exactly(node);
      return exact ? std::optional(Ball(*exact, precision_)) : std::nullopt;
    }
    std::vector<Ball> values;
    for (const auto& child : node.children) {
      auto value = run(*child);
      if (!value) return std::nullopt;
      values.push_back(std::move(*value));
    }
    if (values.empty()) return std::nullopt;
    return apply(node.name, values);
  }

  std::optional<Ball> apply(const std::string& name, std::vector<Ball>& values) {
    Ball& first = values[0];
    if (name == "exp") return exponential(std::move(first));
    if (name == "log" && values.size() == 2) {
      Ball base_logarithm;
      acb_log(base_logarithm.raw(), values[1].raw(), precision_);
      acb_log(first.raw(), first.raw(), precision_);
      acb_div(first.raw(), first.raw(), base_logarithm.raw(), precision_);
      return first;
    }
    if (name == "abs") {
      acb_abs(acb_realref(first.raw()), first.raw(), precision_);
      arb_zero(acb_imagref(first.raw()));
      return first;
    }
    if (name == "factorial") return factorial(first);
    if (name == "binomial" && values.size() == 2) return binomial(first, values[1]);
    if (name == "max" || name == "min" || name == "floor" || name == "ceil" || name == "mod")
      return real(name, values);
    // Gamma and the periodic functions are slow or meaningless far out.
    if (!first.is_below_power_of_two(kMaxExponentBits)) return std::nullopt;
    if (name == "gamma" && !first.is_below_power_of_two(16)) return std::nullopt;
    const UnaryFunction unary = find_unary(name);
    if (!unary || values.size() != 1) return std::nullopt;
    unary(first.raw(), first.raw(), precision_);
    return first;
  }

  // Functions that need real arguments.
  std::optional<Ball> real(const std::string& name, std::vector<Ball>& values) {
    for (const Ball& value : values)
      if (!acb_is_real(value.raw())) return std::nullopt;
    arb_struct* first = acb_realref(values[0].raw());
    if (name == "floor") {
      arb_floor(first, first, precision_);
    } else if (name == "ceil") {
      arb_ceil(first, first, precision_);
    } else if (name == "mod") {
      if (values.size() != 2) return std::nullopt;
      Ball quotient;
      arb_struct* whole = acb_realref(quotient.raw());
      arb_div(whole, first, acb_realref(values[1].raw()), precision_);
      arb_floor(whole, whole, precision_);
      arb_submul(first, whole, acb_realref(values[1].raw()), precision_);
    } else {
      for (size_t i = 1; i < values.size(); ++i) {
        if (name == "max") {
          arb_max(first, first, acb_realref(values[i].raw()), precision_);
        } else {
          arb_min(first, first, acb_realref(values[i].raw()), precision_);
        }
      }
    }
    return values[0];
  }

  std::optional<Ball> factorial(const Ball& n) {
    if (!n.is_below_power_of_two(16)) return std::nullopt;
    Ball result;
    acb_add_ui(result.raw(), n.raw(), 1, precision_);
    acb_gamma(result.raw(), result.raw(), precision_);
    return result;
  }

  std::optional<Ball> binomial(const Ball& n, const Ball& k) {
    Ball rest;
    acb_sub(rest.raw(), n.raw(), k.raw(), precision_);
    auto top = factorial(n), bottom = factorial(k), other = factorial(rest);
    if (!top || !bottom || !other || !bottom->is_finite() || !other->is_finite()) return std::nullopt;
    acb_div(top->raw(), top->raw(), bottom->raw(), precision_);
    acb_div(top->raw(), top->raw(), other->raw(), precision_);
    return top;
  }

  std::optional<Ball> call(const Expression& node) {
    uint64_t hash = hash_text(node.name);
    for (const auto& child : node.children) {
      const auto value = run(*child);
      if (!value) {
        hash = mix(hash, hash_text(structure_key(*child)));
        continue;
      }
      // 40 bits of the value: far fewer than its precision, so that two ways of computing it agree.
      for (const arb_struct* part : {acb_realref(value->raw()), acb_imagref(value->raw())}) {
        arf_t rounded;
        arf_init(rounded);
        arf_set_round(rounded, arb_midref(part), 40, ARF_RND_NEAR);
        const double bits = arf_get_d(rounded, ARF_RND_NEAR);
        arf_clear(rounded);
        hash = mix(hash, hash_text(std::to_string(bits)));
      }
    }
    return pseudo_random(hash, precision_);
  }

  std::optional<Ball> series(const Expression& node) {
    const auto& [body, variable, first, last] =
        std::tie(node.children[0], node.children[1], node.children[2], node.children[3]);
    const int64_t from = series_bound(*first), to = series_bound(*last);
    // Without finite bounds a series only equals one that is written alike.
    if (from == kNoBound || to == kNoBound || to - from > kMaxTerms || from > to + 1)
      return pseudo_random(hash_text(structure_key(node)), precision_);
    const bool is_sum = node.name == "sum";
    Ball total(Rational(is_sum ? 0 : 1), precision_);
    const auto shadowed =
        bound_.find(variable->name) == bound_.end() ? std::nullopt : std::optional(bound_[variable->name]);
    bool valid = true;
    for (int64_t i = from; i <= to && valid; ++i) {
      bound_[variable->name] = Rational(i);
      const auto value = run(*body);
      if (!value) {
        valid = false;
      } else if (is_sum) {
        acb_add(total.raw(), total.raw(), value->raw(), precision_);
      } else {
        acb_mul(total.raw(), total.raw(), value->raw(), precision_);
      }
    }
    bound_.erase(variable->name);
    if (shadowed) bound_[variable->name] = *shadowed;
    return valid ? std::optional(total) : std::nullopt;
  }
};

}  // namespace

std::optional<Ball> evaluate_ball(const Expression& node, const Bindings& bindings, int64_t precision,
                                  Budget& budget) {
  return BallEvaluator(bindings, precision, budget).run(node);
}

}  // namespace ropd::grading
