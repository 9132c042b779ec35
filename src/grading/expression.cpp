#include "grading/expression.h"

namespace ropd::grading {

ExpressionRef make_number(Rational value, bool is_decimal) {
  Expression node{.kind = Kind::number};
  node.value = std::move(value);
  node.is_decimal = is_decimal;
  return std::make_shared<Expression>(std::move(node));
}

ExpressionRef make_symbol(std::string name) {
  Expression node{.kind = Kind::symbol};
  node.name = std::move(name);
  return std::make_shared<Expression>(std::move(node));
}

ExpressionRef make_node(Kind kind, std::vector<ExpressionRef> children, std::string name) {
  Expression node{.kind = kind};
  node.name = std::move(name);
  node.children = std::move(children);
  return std::make_shared<Expression>(std::move(node));
}

namespace {

ExpressionRef make_flat(Kind kind, const ExpressionRef& left, const ExpressionRef& right) {
  std::vector<ExpressionRef> children;
  for (const auto& side : {left, right}) {
    if (side->kind == kind) {
      children.insert(children.end(), side->children.begin(), side->children.end());
    } else {
      children.push_back(side);
    }
  }
  return make_node(kind, std::move(children));
}

void append_key(std::string& key, const Expression& node) {
  key += static_cast<char>('A' + static_cast<int>(node.kind));
  if (node.kind == Kind::number) key += (node.is_decimal ? "." : "") + node.value.text();
  if (!node.name.empty()) key += "\"" + node.name + "\"";
  if (node.left_open) key += "<";
  if (node.right_open) key += ">";
  if (node.num_columns > 0) key += ":" + std::to_string(node.num_columns);
  if (node.children.empty()) return;
  key += "(";
  for (const auto& child : node.children) {
    append_key(key, *child);
    key += ",";
  }
  key += ")";
}

void collect_symbols(std::set<std::string>& names, const Expression& node) {
  if (node.kind == Kind::symbol) names.insert(node.name);
  if (node.kind == Kind::series) {
    std::set<std::string> inside;
    collect_symbols(inside, *node.children[0]);
    inside.erase(node.children[1]->name);
    names.merge(inside);
    collect_symbols(names, *node.children[2]);
    collect_symbols(names, *node.children[3]);
    return;
  }
  for (const auto& child : node.children) collect_symbols(names, *child);
}

}  // namespace

ExpressionRef make_sum(const ExpressionRef& left, const ExpressionRef& right) {
  return make_flat(Kind::add, left, right);
}

ExpressionRef make_product(const ExpressionRef& left, const ExpressionRef& right) {
  return make_flat(Kind::multiply, left, right);
}

ExpressionRef make_negative(const ExpressionRef& child) {
  if (child->kind == Kind::number) return make_number(-child->value, child->is_decimal);
  return make_product(make_number(Rational(-1)), child);
}

ExpressionRef make_difference(const ExpressionRef& left, const ExpressionRef& right) {
  return make_sum(left, make_negative(right));
}

ExpressionRef make_quotient(const ExpressionRef& top, const ExpressionRef& bottom) {
  if (bottom->kind == Kind::number && bottom->value.is_zero()) return nullptr;
  if (is_integer_number(*top) && is_integer_number(*bottom)) return make_number(top->value / bottom->value);
  return make_product(top, make_node(Kind::power, {bottom, make_number(Rational(-1))}));
}

ExpressionRef make_set(const std::vector<ExpressionRef>& elements) {
  std::vector<ExpressionRef> distinct;
  std::set<std::string> keys;
  for (const auto& element : elements)
    if (keys.insert(structure_key(*element)).second) distinct.push_back(element);
  return make_node(Kind::finite_set, std::move(distinct));
}

bool is_integer_number(const Expression& node) {
  return node.kind == Kind::number && !node.is_decimal && node.value.is_integer();
}

bool is_relation(const Expression& node) { return node.kind == Kind::relation || node.kind == Kind::chain; }

bool is_set(const Expression& node) {
  switch (node.kind) {
    case Kind::finite_set:
    case Kind::interval:
    case Kind::set_union:
    case Kind::set_intersection:
    case Kind::set_difference:
    case Kind::named_set:
      return true;
    default:
      return false;
  }
}

std::string structure_key(const Expression& node) {
  std::string key;
  append_key(key, node);
  return key;
}

std::set<std::string> free_symbols(const Expression& node) {
  std::set<std::string> names;
  collect_symbols(names, node);
  return names;
}

}  // namespace ropd::grading
