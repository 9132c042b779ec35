// A parsed answer: numbers, symbols and operations, and around them tuples, sets, intervals, matrices and
// relations. Trees are immutable and shared; their depth is bounded by the parsers (kMaxDepth), so recursion
// over them is bounded. Nothing is simplified when a tree is built, except where the reference does so too
// (integer fractions, signs).
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "grading/number.h"

namespace ropd::grading {

enum class Kind {
  number,      // value; is_decimal when written with a dot
  percent,     // child / 100, kept apart because 50% also equals 50 in places
  symbol,      // name
  pi,          //
  euler,       // e
  imaginary,   //
  infinity,    //
  add,         //
  multiply,    //
  power,       // base, exponent
  function,    // name of a known function (sin, log, ...); log has an optional second child, the base
  call,        // an unknown function f(x): name and arguments
  series,      // sum or prod: name; body, variable, first, last
  opaque,      // integrals, limits, derivatives: name and children, equal only when written alike
  tuple,       //
  finite_set,  // in the order written; equal elements once
  interval,    // two children, left_open, right_open
  set_union,   //
  set_intersection,
  set_difference,
  named_set,  // name: N Z Q R C or empty
  matrix,     // children row by row, num_columns
  relation,   // name is = != < <= > >=; two children
  chain       // relations a < b, b < c of a < b < c
};

struct Expression;
using ExpressionRef = std::shared_ptr<const Expression>;

struct Expression {
  Kind kind = Kind::number;
  std::string name = {};
  Rational value = {};
  bool is_decimal = false;
  bool left_open = false, right_open = false;
  size_t num_columns = 0;
  std::vector<ExpressionRef> children = {};
};

constexpr int kMaxDepth = 100;  // of nesting in an answer; deeper ones do not parse

[[nodiscard]] ExpressionRef make_number(Rational value, bool is_decimal = false);
[[nodiscard]] ExpressionRef make_symbol(std::string name);
[[nodiscard]] ExpressionRef make_node(Kind kind, std::vector<ExpressionRef> children, std::string name = "");
// Sums and products written in one row are one node.
[[nodiscard]] ExpressionRef make_sum(const ExpressionRef& left, const ExpressionRef& right);
[[nodiscard]] ExpressionRef make_product(const ExpressionRef& left, const ExpressionRef& right);
[[nodiscard]] ExpressionRef make_negative(const ExpressionRef& child);
[[nodiscard]] ExpressionRef make_difference(const ExpressionRef& left, const ExpressionRef& right);
// Integers give a rational number; nothing for a division by the number zero.
[[nodiscard]] ExpressionRef make_quotient(const ExpressionRef& top, const ExpressionRef& bottom);
[[nodiscard]] ExpressionRef make_set(const std::vector<ExpressionRef>& elements);

[[nodiscard]] bool is_integer_number(const Expression& node);
[[nodiscard]] bool is_relation(const Expression& node);  // a relation or a chain
[[nodiscard]] bool is_set(const Expression& node);  // intervals, finite sets, their unions ...; not tuples

// Text that is equal exactly for trees built alike: symbols by name, numbers by value and kind.
[[nodiscard]] std::string structure_key(const Expression& node);
// Names of the symbols that occur, bound variables of series excluded.
[[nodiscard]] std::set<std::string> free_symbols(const Expression& node);

}  // namespace ropd::grading
