#include "grading/verify.h"

#include <algorithm>

#include "grading/evaluation.h"
#include "grading/real_set.h"
#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

constexpr int kDecimals = 6;
constexpr size_t kMaxElements = 200;  // of sets that are matched element by element

// Built of symbols alone: x, f(x), a b, A/S. A left side of this kind makes an equation an assignment.
bool consists_of_symbols(const Expression& node) {
  if (node.kind == Kind::symbol) return true;
  if (node.kind == Kind::power && node.children[1]->kind == Kind::number &&
      node.children[1]->value == Rational(-1))
    return consists_of_symbols(*node.children[0]);
  if (node.children.empty()) return false;
  return std::all_of(node.children.begin(), node.children.end(),
                     [](const auto& child) { return consists_of_symbols(*child); });
}

bool is_equation(const Expression& node) {
  if (node.kind == Kind::relation) return node.name == "=";
  return node.kind == Kind::chain && std::all_of(node.children.begin(), node.children.end(),
                                                 [](const auto& part) { return part->name == "="; });
}

const Expression& first_relation(const Expression& node) {
  return node.kind == Kind::chain ? *node.children[0] : node;
}
const Expression& last_relation(const Expression& node) {
  return node.kind == Kind::chain ? *node.children.back() : node;
}

bool is_container(const Expression& node) { return is_set(node) || node.kind == Kind::tuple; }

// A number or a percentage of one; `decimal` asks for one written with a dot.
bool is_plain_number(const Expression& node, bool decimal) {
  const Expression& number = node.kind == Kind::percent ? *node.children[0] : node;
  return number.kind == Kind::number && (!decimal || number.is_decimal);
}

ExpressionRef side_difference(const Expression& relation) {
  if (is_container(*relation.children[0]) || is_container(*relation.children[1])) return nullptr;
  return make_difference(relation.children[0], relation.children[1]);
}

std::string mirrored(std::string sign) {
  if (sign[0] == '<') {
    sign[0] = '>';
  } else if (sign[0] == '>') {
    sign[0] = '<';
  }
  return sign;
}

class Verifier {
 public:
  explicit Verifier(VerifyRules rules) : is_strict_(rules == VerifyRules::strict) {}

  bool are_equal(ExpressionRef gold, ExpressionRef pred, int depth = 0) {
    if (depth > kMaxDepth || --steps_ < 0) return false;
    // Among elements, 2x = 6 has no place in the order of values, so it never meets 6.
    if (depth > 0 && is_equation(*pred) && !is_equation(*gold) && !is_assignment(*pred)) return false;
    unwrap_equations(gold, pred);
    if (is_relation(*gold) && is_set(*pred)) return relation_is_set(*gold, *pred);
    if (is_strict_ && is_set(*gold) && is_relation(*pred)) return relation_is_set(*pred, *gold);
    if (structure_key(*gold) == structure_key(*pred)) return true;
    if (is_relation(*gold) && is_relation(*pred)) return are_equal_relations(*gold, *pred, depth);
    if (is_container(*gold) || is_container(*pred)) return are_equal_containers(gold, pred, depth);
    if (is_relation(*gold) || is_relation(*pred)) return false;
    if (gold->kind == Kind::symbol || pred->kind == Kind::symbol) return are_equal_names(*gold, *pred);
    if (gold->kind == Kind::matrix || pred->kind == Kind::matrix)
      return are_equal_matrices(*gold, *pred, depth);
    return are_equal_scalars(gold, pred);
  }

 private:
  const bool is_strict_;
  int64_t steps_ = 5000;

  bool is_assignment(const Expression& node) const {
    if (!is_equation(node)) return false;
    const Expression& left = *first_relation(node).children[0];
    if (!is_strict_) return consists_of_symbols(left);
    return left.kind == Kind::symbol || left.kind == Kind::call ||
           (left.kind == Kind::tuple && consists_of_symbols(left));
  }

  // x = 5 against 5: the form of the expected answer counts; x = 5 against y = 5 stay equations.
  void unwrap_equations(ExpressionRef& gold, ExpressionRef& pred) const {
    const bool gold_assigns = is_assignment(*gold), pred_assigns = is_assignment(*pred);
    const bool gold_is_equation = is_equation(*gold), pred_is_equation = is_equation(*pred);
    const auto shorten = [](const Expression& node) {
      return make_node(Kind::relation, {first_relation(node).children[0], last_relation(node).children[1]},
                       "=");
    };
    if (gold_assigns) gold = shorten(*gold);
    if (pred_assigns) pred = shorten(*pred);
    if (pred_is_equation && !gold_is_equation) {
      if (!is_strict_ || pred_assigns || is_true_equation(*pred)) pred = last_relation(*pred).children[1];
    } else if (gold_assigns && !pred_is_equation) {
      gold = last_relation(*gold).children[1];
    }
  }

  // 3 + 4 = 7
  static bool is_true_equation(const Expression& node) {
    const auto holds = [](const Expression& part) {
      const auto order = compare_reals(part.children[0], part.children[1]);
      return order && *order == 0;
    };
    if (node.kind == Kind::relation) return holds(node);
    return std::all_of(node.children.begin(), node.children.end(),
                       [&](const auto& part) { return holds(*part); });
  }

  static bool relation_is_set(const Expression& relation, const Expression& set) {
    const auto solutions = to_solution_set(relation), expected = to_real_set(set);
    return solutions && expected && are_equal_sets(*solutions, *expected);
  }

  bool are_equal_relations(const Expression& gold, const Expression& pred, int depth) {
    if ((steps_ -= 20) < 0) return false;
    if (gold.kind == Kind::chain && pred.kind == Kind::chain) {
      if (is_strict_ && gold.children.size() != pred.children.size()) return false;
      const size_t count = std::min(gold.children.size(), pred.children.size());
      for (size_t i = 0; i < count; ++i)
        if (!are_equal_relations(*gold.children[i], *pred.children[i], depth + 1)) return false;
      return true;
    }
    if (gold.kind == Kind::chain || pred.kind == Kind::chain) return false;
    const auto a = side_difference(gold), b = side_difference(pred);
    if (!a || !b)
      return gold.name == pred.name && are_equal(gold.children[0], pred.children[0], depth + 1) &&
             are_equal(gold.children[1], pred.children[1], depth + 1);
    if (gold.name == pred.name && are_equal_values(a, b, tolerance())) return true;
    if (gold.name == "!=") return false;
    if (mirrored(gold.name) == pred.name && are_equal_values(a, make_negative(b), tolerance())) return true;
    // Multiples of each other have the same solutions. The reference solves, and its comparison of solutions
    // fails for inequalities and for equations in one symbol.
    if (!is_strict_ && (gold.name != "=" || free_symbols(*a).size() < 2)) return false;
    const auto sign = proportionality_sign(a, b);
    return sign && pred.name == (*sign > 0 ? gold.name : mirrored(gold.name));
  }

  Tolerance tolerance() const { return is_strict_ ? Tolerance::exact : Tolerance::chop; }

  bool are_equal_containers(const ExpressionRef& gold_node, const ExpressionRef& pred_node, int depth) {
    const auto gold = is_container(*gold_node) ? gold_node : make_set({gold_node});
    const auto pred = is_container(*pred_node) ? pred_node : make_set({pred_node});
    if (gold->kind == Kind::interval && pred->kind == Kind::interval)
      return gold->left_open == pred->left_open && gold->right_open == pred->right_open &&
             are_equal(gold->children[0], pred->children[0], depth + 1) &&
             are_equal(gold->children[1], pred->children[1], depth + 1);
    if (is_set(*gold) && is_set(*pred)) {
      const auto a = to_real_set(*gold), b = to_real_set(*pred);
      if (a && b && are_equal_sets(*a, *b)) return true;
    }
    const auto is_list = [](const Expression& node) {
      return node.kind == Kind::finite_set || node.kind == Kind::tuple;
    };
    if (is_list(*gold) && is_list(*pred)) return are_equal_lists(*gold, *pred, depth);
    if (is_strict_) return false;
    // (1,2) reads as an interval, but may have been meant as a pair.
    if (is_open_interval(*gold) && is_list(*pred) && pred->children.size() == 2)
      return are_equal_lists(*make_node(Kind::tuple, gold->children), *pred, depth);
    if (is_open_interval(*pred) && is_list(*gold) && gold->children.size() == 2)
      return are_equal_lists(*gold, *make_node(Kind::tuple, pred->children), depth);
    return false;
  }

  static bool is_open_interval(const Expression& node) {
    return node.kind == Kind::interval && node.left_open && node.right_open;
  }

  // In order when a tuple is expected, in any order when a set is.
  bool are_equal_lists(const Expression& gold, const Expression& pred, int depth) {
    if (gold.children.size() != pred.children.size() || gold.children.size() > kMaxElements) return false;
    if (is_strict_ && gold.kind != pred.kind) return false;
    if (gold.kind == Kind::tuple) {
      for (size_t i = 0; i < gold.children.size(); ++i)
        if (!are_equal(gold.children[i], pred.children[i], depth + 1)) return false;
      return true;
    }
    std::vector<bool> used(pred.children.size());
    for (const auto& element : gold.children) {
      bool found = false;
      for (size_t i = 0; i < used.size() && !found; ++i) {
        if (used[i] || !are_equal(element, pred.children[i], depth + 1)) continue;
        used[i] = found = true;
      }
      if (!found) return false;
    }
    return true;
  }

  // Symbols, and words that were read as a product of letters.
  bool are_equal_names(const Expression& gold, const Expression& pred) const {
    const auto a = joined_name(gold), b = joined_name(pred);
    if (a.empty() || b.empty()) return false;
    if (is_strict_ && count_characters(a) == 1 && count_characters(b) == 1) return a == b;
    return to_lower(a) == to_lower(b);
  }

  static std::string joined_name(const Expression& node) {
    if (node.kind == Kind::symbol) return node.name;
    if (node.kind == Kind::euler) return "e";
    if (node.kind != Kind::multiply) return "";
    std::string name;
    for (const auto& child : node.children) {
      if (child->kind != Kind::symbol && child->kind != Kind::euler) return "";
      name += child->kind == Kind::euler ? "e" : child->name;
    }
    return name;
  }

  bool are_equal_matrices(const Expression& gold, const Expression& pred, int depth) {
    if (gold.kind != pred.kind || gold.num_columns != pred.num_columns ||
        gold.children.size() != pred.children.size())
      return false;
    for (size_t i = 0; i < gold.children.size(); ++i)
      if (!are_equal(gold.children[i], pred.children[i], depth + 1)) return false;
    return true;
  }

  bool are_equal_scalars(const ExpressionRef& gold, const ExpressionRef& pred) const {
    if (is_strict_)
      return are_equal_values(gold, pred, Tolerance::exact) || is_rounding(*gold, *pred) ||
             is_rounding(*pred, *gold);
    const bool any_number = is_plain_number(*gold, false) || is_plain_number(*pred, false);
    const bool any_decimal = is_plain_number(*gold, true) || is_plain_number(*pred, true);
    // The reference's library holds no rounded decimal for an integer, so 2.0000004 is not 2.
    if (any_decimal && !is_exact_integer(*gold) && !is_exact_integer(*pred)) {
      const auto a = rounded_text(*gold, kDecimals), b = rounded_text(*pred, kDecimals);
      if (a && b) return *a == *b;
    }
    return are_equal_values(gold, pred, any_number ? Tolerance::exact : Tolerance::chop);
  }

  static bool is_exact_integer(const Expression& node) {
    if (is_plain_number(node, true)) return false;
    const auto value = evaluate_exactly(node);
    return value && value->is_integer();
  }

  // A decimal of at least 6 significant digits that is `value` correctly rounded; value itself is no decimal.
  static bool is_rounding(const Expression& decimal, const Expression& value) {
    if (decimal.kind != Kind::number || !decimal.is_decimal || is_plain_number(value, true)) return false;
    int decimals = 0;
    for (Rational scaled = decimal.value; !scaled.is_integer() && decimals < 40; ++decimals)
      scaled = scaled * Rational(10);
    const auto a = rounded_text(decimal, decimals), b = rounded_text(value, decimals);
    if (!a || !b || *a != *b) return false;
    return std::count_if(a->begin(), a->end(), is_digit) >= kDecimals;
  }
};

}  // namespace

bool verify(const ExpressionRef& given, const ExpressionRef& expected, VerifyRules rules) {
  return Verifier(rules).are_equal(expected, given);
}

}  // namespace ropd::grading
