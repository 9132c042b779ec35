// One class for one grammar: its rules call each other in a circle (a function's argument is a product, a
// product's factor may be a set's element), so the file is longer than usual; the headings inside group lists
// and sets, arithmetic, functions and atoms.
#include "grading/latex_parser.h"

#include <map>

#include "grading/evaluation.h"
#include "grading/latex_lexer.h"
#include "grading/matrix_algebra.h"
#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

constexpr int64_t kMaxSteps = 50000;

// Whether functions (and calls, roots, powers of e) may stand here: behind the first factor of an argument
// written without parentheses they end it (\sin 2x \cos y).
enum class Functions { allowed, excluded };

class LatexParser {
 public:
  LatexParser(std::vector<Token> tokens, LatexDialect dialect)
      : tokens_(std::move(tokens)), dialect_(dialect) {}

  ExpressionRef run() {
    for (const auto rule :
         {&LatexParser::named_elements, &LatexParser::elements_with_relations, &LatexParser::set_relation}) {
      position_ = 0;
      const auto result = (this->*rule)();
      if (result && position_ == tokens_.size()) return result;
    }
    return nullptr;
  }

 private:
  struct Attempt {
    ExpressionRef result;
    size_t end = 0;
  };

  const std::vector<Token> tokens_;
  const LatexDialect dialect_;
  size_t position_ = 0;
  int depth_ = 0;
  int open_bars_ = 0;  // inside |..| a bar closes
  int64_t steps_ = kMaxSteps;
  std::map<std::tuple<int, size_t, int>, Attempt> memory_;

  // --- tokens
  // -------------------------------------------------------------------------------------------------------
  bool is(TokenKind kind) const { return position_ < tokens_.size() && tokens_[position_].kind == kind; }
  bool is_at(size_t index, TokenKind kind) const {
    return index < tokens_.size() && tokens_[index].kind == kind;
  }
  bool take(TokenKind kind) {
    if (!is(kind)) return false;
    ++position_;
    return true;
  }
  const Token& take_any() { return tokens_[position_++]; }

  // Runs `rule` once per place and context and remembers its result, which keeps alternatives from
  // multiplying.
  template <class Rule>
  ExpressionRef remembered(int rule_id, Rule rule) {
    const auto key = std::tuple(rule_id, position_, open_bars_ > 0 ? 1 : 0);
    if (const auto found = memory_.find(key); found != memory_.end()) {
      position_ = found->second.end;
      return found->second.result;
    }
    if (depth_ >= kMaxDepth || --steps_ < 0) return nullptr;
    ++depth_;
    ExpressionRef result = rule();
    --depth_;
    memory_[key] = {result, position_};
    return result;
  }

  // --- lists, sets, relations
  // --------------------------------------------------------------------------------------- x = 1, 2, 3   or
  // x \in (0, 1)
  ExpressionRef named_elements() {
    const auto left = name_or_names();
    if (!left || !take_equality_or_membership()) return nullptr;
    const auto right = elements(/*with_relations=*/false);
    return right && position_ == tokens_.size() ? make_relation("=", left, right) : nullptr;
  }

  bool take_equality_or_membership() {
    if (take(TokenKind::element_of)) return true;
    if (!is(TokenKind::relation) || tokens_[position_].text != "=") return false;
    ++position_;
    return true;
  }

  static ExpressionRef make_relation(const std::string& sign, const ExpressionRef& left,
                                     const ExpressionRef& right) {
    return make_node(Kind::relation, {left, right}, sign);
  }

  ExpressionRef name_or_names() {
    if (take(TokenKind::open_parenthesis)) {
      std::vector<ExpressionRef> names;
      do {
        auto one = symbol_atom();
        if (!one) return nullptr;
        names.push_back(std::move(one));
      } while (take(TokenKind::comma));
      if (!take(TokenKind::close_parenthesis)) return nullptr;
      return names.size() == 1 ? names[0] : make_node(Kind::tuple, std::move(names));
    }
    return symbol_atom();
  }

  ExpressionRef elements_with_relations() { return elements(/*with_relations=*/true); }

  // a, b; c, d: one element is itself, a plain list is a set, lists between semicolons are a set of tuples.
  ExpressionRef elements(bool with_relations) {
    std::vector<std::vector<ExpressionRef>> groups;
    if (element_groups(groups, with_relations) == 0) return nullptr;
    if (groups.size() == 1) return groups[0].size() == 1 ? groups[0][0] : make_set(groups[0]);
    std::vector<ExpressionRef> members;
    bool all_single = true;
    for (const auto& group : groups) all_single = all_single && group.size() == 1;
    for (auto& group : groups)
      members.push_back(all_single ? group[0] : make_node(Kind::tuple, std::move(group)));
    return make_set(members);
  }

  // How many elements were written (a \pm b is one, although it gives two values); 0 when they do not parse.
  size_t element_groups(std::vector<std::vector<ExpressionRef>>& groups, bool with_relations) {
    size_t count = 0;
    do {
      groups.emplace_back();
      do {
        if (!element(groups.back(), with_relations)) return 0;
        ++count;
      } while (take(TokenKind::comma));
    } while (take(TokenKind::semicolon));
    return count;
  }

  bool at_element_end() const {
    return position_ == tokens_.size() || is(TokenKind::comma) || is(TokenKind::semicolon) ||
           is(TokenKind::close_parenthesis) || is(TokenKind::close_bracket) || is(TokenKind::close_brace) ||
           is(TokenKind::close_set);
  }

  // One element; a \pm b gives two.
  bool element(std::vector<ExpressionRef>& out, bool with_relations) {
    const size_t begin = position_;
    if (take(TokenKind::plus_minus)) {
      const auto value = expression();
      if (!value) return false;
      out.push_back(make_negative(value));
      out.push_back(value);
      return true;
    }
    if (auto set = set_atom(); set && at_element_end()) {
      out.push_back(std::move(set));
      return true;
    }
    position_ = begin;
    const auto left = expression();
    if (!left) return false;
    if (take(TokenKind::plus_minus)) {
      const auto right = expression();
      if (!right) return false;
      out.push_back(make_sum(left, right));
      out.push_back(make_difference(left, right));
      return true;
    }
    if (!with_relations) {
      out.push_back(left);
      return true;
    }
    auto related = relation_chain(left);
    if (!related) return false;
    out.push_back(std::move(related));
    return true;
  }

  // a < b < c: the relations a < b and b < c. "x \approx 3" is 3, other approximations keep their left side.
  ExpressionRef relation_chain(ExpressionRef left) {
    while (is(TokenKind::relation) || is(TokenKind::approximately)) {
      const Token token = take_any();
      const auto right = expression();
      if (!right) return nullptr;
      if (token.kind == TokenKind::approximately) {
        if (consists_of_symbols(*left)) left = right;
        continue;
      }
      if (left->kind == Kind::chain) {
        auto relations = left->children;
        relations.push_back(make_relation(token.text, relations.back()->children[1], right));
        left = make_node(Kind::chain, std::move(relations));
      } else if (left->kind == Kind::relation) {
        left = make_node(Kind::chain, {left, make_relation(token.text, left->children[1], right)});
      } else {
        left = make_relation(token.text, left, right);
      }
    }
    return left;
  }

  static bool consists_of_symbols(const Expression& node) {
    if (node.kind == Kind::symbol) return true;
    if (node.children.empty()) return false;
    for (const auto& child : node.children)
      if (!consists_of_symbols(*child)) return false;
    return true;
  }

  // x \in (0,1) \cup [2,3), \mathbb{R} \setminus \{1\}
  ExpressionRef set_relation() {
    const size_t begin = position_;
    if (const auto left = name_or_names()) {
      if (take(TokenKind::not_element_of)) {
        const auto right = set_expression();
        return right ? make_relation(
                           "=", left,
                           make_node(Kind::set_difference, {make_node(Kind::named_set, {}, "R"), right}))
                     : nullptr;
      }
      if (take_equality_or_membership()) {
        const auto right = set_expression();
        return right ? make_relation("=", left, right) : nullptr;
      }
    }
    position_ = begin;
    return set_expression();
  }

  ExpressionRef set_expression() {
    return remembered(1, [this] { return binary_sets(TokenKind::set_minus, Kind::set_difference); });
  }

  static ExpressionRef as_set(const ExpressionRef& node) {
    return node->kind == Kind::tuple ? make_set(node->children) : node;
  }

  // Difference binds weakest, then union, then intersection; all to the left.
  ExpressionRef binary_sets(TokenKind sign, Kind kind) {
    const auto operand = [&] {
      if (kind == Kind::set_difference) return binary_sets(TokenKind::set_union, Kind::set_union);
      if (kind == Kind::set_union) return binary_sets(TokenKind::set_intersection, Kind::set_intersection);
      return set_group();
    };
    auto left = operand();
    while (left && take(sign)) {
      const auto right = operand();
      if (!right) return nullptr;
      left = make_node(kind, {as_set(left), as_set(right)});
    }
    return left;
  }

  ExpressionRef set_group() {
    const size_t begin = position_;
    if (auto atom = set_atom()) return atom;
    position_ = begin;
    if (!take(TokenKind::open_parenthesis)) return nullptr;
    auto inside = set_expression();
    return inside && take(TokenKind::close_parenthesis) ? inside : nullptr;
  }

  ExpressionRef set_atom() {
    return remembered(2, [this]() -> ExpressionRef {
      if (take(TokenKind::empty_set)) return make_node(Kind::named_set, {}, "empty");
      if (is(TokenKind::named_set)) return make_node(Kind::named_set, {}, take_any().text);
      if (is(TokenKind::open_brace) && is_at(position_ + 1, TokenKind::close_brace)) {
        position_ += 2;
        return make_node(Kind::named_set, {}, "empty");
      }
      if (is(TokenKind::open_parenthesis) || is(TokenKind::open_bracket)) return bracketed();
      if (is(TokenKind::open_brace) || is(TokenKind::open_set)) {
        const TokenKind close = is(TokenKind::open_brace) ? TokenKind::close_brace : TokenKind::close_set;
        ++position_;
        std::vector<std::vector<ExpressionRef>> groups;
        if (element_groups_inside(groups) == 0 || !take(close)) return nullptr;
        std::vector<ExpressionRef> members;
        for (const auto& group : groups) members.insert(members.end(), group.begin(), group.end());
        return make_set(members);
      }
      return nullptr;
    });
  }

  // Inside brackets of their own, an outer |..| does not end at a bar.
  size_t element_groups_inside(std::vector<std::vector<ExpressionRef>>& groups) {
    const int bars = open_bars_;
    open_bars_ = 0;
    const size_t count = element_groups(groups, /*with_relations=*/true);
    open_bars_ = bars;
    return count;
  }

  ExpressionRef bracketed() {
    const bool left_open = take_any().kind == TokenKind::open_parenthesis;
    std::vector<std::vector<ExpressionRef>> groups;
    const size_t count = element_groups_inside(groups);
    if (count == 0) return nullptr;
    if (!is(TokenKind::close_parenthesis) && !is(TokenKind::close_bracket)) return nullptr;
    const bool right_open = take_any().kind == TokenKind::close_parenthesis;
    if (count == 2 && groups.size() == 1 && groups[0].size() == 2 && is_scalar(*groups[0][0]) &&
        is_scalar(*groups[0][1]))
      return interval(groups[0][0], groups[0][1], left_open, right_open);
    if (left_open != right_open) return nullptr;
    std::vector<ExpressionRef> members;
    for (const auto& group : groups) members.insert(members.end(), group.begin(), group.end());
    return members.size() == 1 ? members[0] : make_node(Kind::tuple, std::move(members));
  }

  static bool is_scalar(const Expression& node) {
    return !is_relation(node) && !is_set(node) && node.kind != Kind::tuple;
  }

  // An interval that would be empty was meant as a pair.
  static ExpressionRef interval(const ExpressionRef& left, const ExpressionRef& right, bool left_open,
                                bool right_open) {
    const auto order = compare_reals(right, left);
    if (order && ((left_open && right_open && *order <= 0) || (!left_open && !right_open && *order < 0)))
      return make_node(Kind::tuple, {left, right});
    if (order && *order < 0) return make_node(Kind::named_set, {}, "empty");
    if (order && *order == 0)
      return left_open || right_open ? make_node(Kind::named_set, {}, "empty") : make_set({left});
    Expression node{.kind = Kind::interval};
    node.children = {left, right};
    // No set holds infinity, so a bracket there is as good as a parenthesis.
    node.left_open =
        left_open || (left->kind == Kind::multiply && left->children.back()->kind == Kind::infinity);
    node.right_open = right_open || right->kind == Kind::infinity;
    return std::make_shared<Expression>(std::move(node));
  }

  // --- arithmetic
  // ---------------------------------------------------------------------------------------------------
  ExpressionRef expression() {
    return remembered(3, [this] { return sum(); });
  }

  static ExpressionRef plus(const ExpressionRef& left, const ExpressionRef& right) {
    if (is_matrix(*left) || is_matrix(*right)) return add_matrices(left, right);
    return make_sum(left, right);
  }
  static ExpressionRef times(const ExpressionRef& left, const ExpressionRef& right) {
    if (is_matrix(*left) || is_matrix(*right)) return multiply_with_matrix(left, right);
    return make_product(left, right);
  }
  static ExpressionRef over(const ExpressionRef& top, const ExpressionRef& bottom) {
    if (is_matrix(*bottom)) return nullptr;
    if (!is_matrix(*top)) return make_quotient(top, bottom);
    const auto factor = make_quotient(make_number(Rational(1)), bottom);
    return factor ? multiply_with_matrix(factor, top) : nullptr;
  }
  static ExpressionRef negative(const ExpressionRef& child) {
    return is_matrix(*child) ? multiply_with_matrix(make_number(Rational(-1)), child) : make_negative(child);
  }

  ExpressionRef sum() {
    auto left = product(Functions::allowed);
    while (left && (is(TokenKind::plus) || is(TokenKind::minus))) {
      const bool is_plus = take_any().kind == TokenKind::plus;
      const auto right = product(Functions::allowed);
      if (!right) return nullptr;
      left = plus(left, is_plus ? right : negative(right));
    }
    return left;
  }

  ExpressionRef product(Functions functions) {
    auto left = signed_factors(functions);
    while (left && (is(TokenKind::times) || is(TokenKind::divide) || is(TokenKind::modulo))) {
      const TokenKind sign = take_any().kind;
      const auto right = signed_factors(functions);
      if (!right) return nullptr;
      if (sign == TokenKind::times) left = times(left, right);
      if (sign == TokenKind::divide) left = over(left, right);
      if (sign == TokenKind::modulo) left = make_node(Kind::function, {left, right}, "mod");
    }
    return left;
  }

  ExpressionRef signed_factors(Functions functions) {
    bool is_negative = false;
    while (is(TokenKind::plus) || is(TokenKind::minus)) {
      // Each sign binds by itself: --x is -(-x).
      if (take_any().kind == TokenKind::minus) is_negative = !is_negative;
    }
    auto result = factors(functions);
    return result && is_negative ? negative(result) : result;
  }

  // Juxtaposed factors are multiplied from the right.
  ExpressionRef factors(Functions functions) {
    std::vector<ExpressionRef> list;
    std::vector<size_t> begins;
    begins.push_back(position_);
    auto first = postfix(Functions::allowed);
    if (!first) return nullptr;
    list.push_back(std::move(first));
    while (starts_factor(functions)) {
      const size_t begin = position_;
      auto next = postfix(functions);
      if (!next) {
        position_ = begin;
        break;
      }
      begins.push_back(begin);
      list.push_back(std::move(next));
    }
    auto result = list.back();
    if (result->kind == Kind::opaque && result->name == "d/d") return nullptr;
    for (size_t i = list.size() - 1; i-- > 0 && result;)
      result = juxtapose(list[i], result, begins[i], begins[i + 1]);
    return result;
  }

  ExpressionRef juxtapose(const ExpressionRef& left, const ExpressionRef& right, size_t left_begin,
                          size_t right_begin) {
    if (left->kind == Kind::opaque && left->name == "d/d") return derivative(right, left->children[0]);
    if (dialect_ == LatexDialect::strict) {
      const bool digits_meet = is_at(left_begin, TokenKind::number) &&
                               is_at(right_begin, TokenKind::number) && right_begin == left_begin + 1;
      if (digits_meet) return nullptr;
      const bool is_mixed = is_integer_number(*left) && is_at(left_begin, TokenKind::number) &&
                            right_begin == left_begin + 1 && is_at(right_begin, TokenKind::fraction) &&
                            right->kind == Kind::number && right->value.sign() > 0;
      return is_mixed ? make_number(left->value + right->value) : times(left, right);
    }
    // A whole number before a positive rational one is a mixed number, however they are written.
    if (is_integer_number(*left) && right->kind == Kind::number && !right->is_decimal &&
        right->value.sign() > 0)
      return make_number(left->value.sign() < 0 ? left->value - right->value : left->value + right->value);
    return times(left, right);
  }

  bool starts_factor(Functions functions) const {
    if (position_ >= tokens_.size()) return false;
    switch (tokens_[position_].kind) {
      case TokenKind::number:
      case TokenKind::percent:
      case TokenKind::scientific:
      case TokenKind::letter:
      case TokenKind::capital_e:
      case TokenKind::greek:
      case TokenKind::other_symbol:
      case TokenKind::accent:
      case TokenKind::differential:
      case TokenKind::infinity:
      case TokenKind::open_parenthesis:
      case TokenKind::open_bracket:
      case TokenKind::open_brace:
      case TokenKind::open_set:
      case TokenKind::open_floor:
      case TokenKind::open_ceil:
      case TokenKind::fraction:
      case TokenKind::binomial:
      case TokenKind::begin_matrix:
      case TokenKind::begin_determinant:
        return true;
      case TokenKind::bar:
        return open_bars_ == 0;
      case TokenKind::small_e:
      case TokenKind::function:
      case TokenKind::multi_function:
      case TokenKind::square_root:
      case TokenKind::series:
      case TokenKind::limit:
      case TokenKind::integral:
      case TokenKind::operator_name:
        return functions == Functions::allowed;
      default:
        return false;
    }
  }

  // A power with factorials, degrees and transposes behind it.
  ExpressionRef postfix(Functions functions) {
    if (--steps_ < 0) return nullptr;
    auto result = powers(functions);
    while (result) {
      if (take(TokenKind::bang)) {
        result = make_node(Kind::function, {result}, "factorial");
      } else if (take(TokenKind::transpose)) {
        result = make_node(Kind::call, {result}, "transpose");
      } else if (!take(TokenKind::degree)) {
        return result;
      }
    }
    return result;
  }

  ExpressionRef powers(Functions functions) {
    auto base = component(functions);
    while (base && take(TokenKind::caret)) {
      const auto exponent = script();
      if (!exponent) return nullptr;
      if (is(TokenKind::underscore) && !skip_subscript()) return nullptr;
      base = make_node(Kind::power, {base, exponent});
    }
    return base;
  }

  // What stands behind ^ or _: an atom or {expression}.
  ExpressionRef script() {
    if (is(TokenKind::open_brace)) return enclosed(TokenKind::close_brace);
    return atom();
  }

  ExpressionRef enclosed(TokenKind close) {
    ++position_;
    const int bars = open_bars_;
    open_bars_ = 0;
    auto inside = expression();
    open_bars_ = bars;
    return inside && take(close) ? inside : nullptr;
  }

  ExpressionRef component(Functions functions) {
    if (position_ >= tokens_.size()) return nullptr;
    switch (tokens_[position_].kind) {
      case TokenKind::open_parenthesis:
        return enclosed(TokenKind::close_parenthesis);
      case TokenKind::open_bracket:
        return enclosed(TokenKind::close_bracket);
      case TokenKind::open_brace:
        return brace_group();
      case TokenKind::open_set:
        return enclosed(TokenKind::close_set);
      case TokenKind::open_floor:
        return wrapped("floor", enclosed(TokenKind::close_floor));
      case TokenKind::open_ceil:
        return wrapped("ceil", enclosed(TokenKind::close_ceil));
      case TokenKind::bar:
        return absolute_value();
      case TokenKind::fraction:
        return fraction();
      case TokenKind::binomial:
        return binomial();
      case TokenKind::begin_matrix:
        return matrix(TokenKind::end_matrix);
      case TokenKind::begin_determinant:
        return wrapped("det", matrix(TokenKind::end_determinant));
      default:
        return functions == Functions::allowed ? function_or_atom() : atom();
    }
  }

  static ExpressionRef wrapped(const char* name, const ExpressionRef& child) {
    if (!child) return nullptr;
    return make_node(is_matrix(*child) ? Kind::call : Kind::function, {child}, name);
  }

  ExpressionRef absolute_value() {
    ++position_;
    ++open_bars_;
    auto inside = expression();
    --open_bars_;
    return inside && take(TokenKind::bar) ? wrapped("abs", inside) : nullptr;
  }

  // {a} or {n \choose k}
  ExpressionRef brace_group() {
    ++position_;
    const int bars = open_bars_;
    open_bars_ = 0;
    auto top = expression();
    auto result = top;
    if (top && take(TokenKind::choose)) {
      const auto bottom = expression();
      result = bottom ? make_node(Kind::function, {top, bottom}, "binomial") : nullptr;
    }
    open_bars_ = bars;
    return result && take(TokenKind::close_brace) ? result : nullptr;
  }

  ExpressionRef fraction() {
    const size_t begin = ++position_;
    if (!is(TokenKind::open_brace)) return nullptr;
    const auto top = enclosed(TokenKind::close_brace);
    const size_t middle = position_;
    if (!top || !is(TokenKind::open_brace)) return nullptr;
    // \frac{d}{dx} is an operator, \frac{d y}{d x} a derivative: of something that does not hold x it is
    // zero.
    if (is_at(middle + 1, TokenKind::differential) && is_at(middle + 2, TokenKind::close_brace)) {
      const auto variable = make_symbol(tokens_[middle + 1].text);
      const Token& head = tokens_[begin + 1];
      if (middle == begin + 3 && head.kind == TokenKind::letter && head.text == "d") {
        position_ = middle + 3;
        return make_node(Kind::opaque, {variable}, "d/d");
      }
      if (middle == begin + 3 && head.kind == TokenKind::differential) {
        position_ = middle + 3;
        return derivative(make_symbol(head.text), variable);
      }
    }
    const auto bottom = enclosed(TokenKind::close_brace);
    return bottom ? over(top, bottom) : nullptr;
  }

  static ExpressionRef derivative(const ExpressionRef& body, const ExpressionRef& variable) {
    if (!free_symbols(*body).contains(variable->name)) return make_number(Rational(0));
    if (body->kind == Kind::symbol) return make_number(Rational(1));
    return make_node(Kind::opaque, {body, variable}, "derivative");
  }

  ExpressionRef binomial() {
    ++position_;
    if (!is(TokenKind::open_brace)) return nullptr;
    const auto top = enclosed(TokenKind::close_brace);
    if (!top || !is(TokenKind::open_brace)) return nullptr;
    const auto bottom = enclosed(TokenKind::close_brace);
    return bottom ? make_node(Kind::function, {top, bottom}, "binomial") : nullptr;
  }

  ExpressionRef matrix(TokenKind end) {
    ++position_;
    std::vector<ExpressionRef> elements;
    size_t num_columns = 0;
    do {
      if (is(end)) break;  // \\ behind the last row
      size_t columns = 0;
      do {
        auto element = expression();
        if (!element) return nullptr;
        elements.push_back(std::move(element));
        ++columns;
      } while (take(TokenKind::ampersand));
      if (num_columns != 0 && columns != num_columns) return nullptr;
      num_columns = columns;
    } while (take(TokenKind::row_end));
    if (!take(end) || elements.empty()) return nullptr;
    return make_matrix(std::move(elements), num_columns);
  }

  // --- functions and atoms
  // ------------------------------------------------------------------------------------------
  ExpressionRef function_or_atom() {
    switch (tokens_[position_].kind) {
      case TokenKind::function:
        return named_function(take_any().text);
      case TokenKind::operator_name:
        return operator_function();
      case TokenKind::multi_function:
        return multi_function(take_any().text);
      case TokenKind::square_root:
        return square_root();
      case TokenKind::small_e:
        return power_of_e();
      case TokenKind::series:
        return series(take_any().text);
      case TokenKind::limit:
      case TokenKind::integral:
        return unevaluated(take_any().spelling);
      default:
        break;
    }
    const size_t begin = position_;
    if (auto call = unknown_function()) return call;
    position_ = begin;
    return atom();
  }

  // f(x), f^2(x), f(x, y): a name directly before parentheses that hold one atom or a list.
  ExpressionRef unknown_function() {
    std::string name = symbol_name();
    if (name.empty()) return nullptr;
    ExpressionRef exponent;
    if (take(TokenKind::caret) && !(exponent = script())) return nullptr;
    const TokenKind close =
        is(TokenKind::open_parenthesis) ? TokenKind::close_parenthesis : TokenKind::close_bracket;
    if (!take(TokenKind::open_parenthesis) && !take(TokenKind::open_bracket)) return nullptr;
    const size_t begin = position_;
    std::vector<ExpressionRef> arguments;
    if (auto single = atom(); single && take(close)) {
      arguments.push_back(std::move(single));
    } else {
      position_ = begin;
      do {
        auto argument = expression();
        if (!argument) return nullptr;
        arguments.push_back(std::move(argument));
      } while (take(TokenKind::comma) && !is(close));
      if (arguments.size() < 2 || !take(close)) return nullptr;
    }
    auto call = make_node(Kind::call, std::move(arguments), std::move(name));
    return exponent ? make_node(Kind::power, {call, exponent}) : call;
  }

  struct Scripts {
    ExpressionRef sub, super;
    bool ok = true;
  };
  Scripts scripts() {
    Scripts result;
    for (int i = 0; i < 2; ++i) {
      if (!result.sub && take(TokenKind::underscore)) {
        result.sub = script();
        if (!result.sub) result.ok = false;
      } else if (!result.super && take(TokenKind::caret)) {
        result.super = script();
        if (!result.super) result.ok = false;
      }
    }
    return result;
  }

  // (argument) or the following product up to the next function.
  ExpressionRef argument() {
    const size_t begin = position_;
    if (is(TokenKind::open_parenthesis)) {
      if (auto inside = enclosed(TokenKind::close_parenthesis)) return inside;
      position_ = begin;
    }
    if (depth_ >= kMaxDepth) return nullptr;
    ++depth_;
    auto result = product(Functions::excluded);
    --depth_;
    return result;
  }

  ExpressionRef named_function(std::string name) {
    Scripts marks = scripts();
    if (!marks.ok) return nullptr;
    auto inside = argument();
    if (!inside) return nullptr;
    if (name.starts_with("arc")) {
      name = "a" + name.substr(3);
    } else if (name.starts_with("ar")) {
      name = "a" + name.substr(2);
    }
    const bool is_trigonometric = name == "sin" || name == "cos" || name == "tan" || name == "csc" ||
                                  name == "sec" || name == "cot" || name == "sinh" || name == "cosh" ||
                                  name == "tanh";
    if (is_trigonometric && marks.super && marks.super->kind == Kind::number &&
        marks.super->value == Rational(-1)) {
      name = "a" + name;
      marks.super = nullptr;
    }
    ExpressionRef result;
    if (name == "log" || name == "ln") {
      if (marks.sub) {
        result = make_node(Kind::function, {inside, marks.sub}, "log");
      } else if (name == "ln") {
        result = make_node(Kind::function, {inside}, "log");
      } else {
        result = make_node(Kind::function, {inside, make_number(Rational(10))}, "log");
      }
    } else if (name == "exp") {
      result = make_node(Kind::power, {make_node(Kind::euler, {}), inside});
    } else {
      result = reciprocal_inverse(name, inside);
    }
    return marks.super ? make_node(Kind::power, {result, marks.super}) : result;
  }

  // acsc x = asin(1/x) and so on; the evaluation knows the others.
  static ExpressionRef reciprocal_inverse(const std::string& name, const ExpressionRef& inside) {
    for (const auto& [inverse, plain] : {std::pair{"acsc", "asin"}, {"asec", "acos"}, {"acot", "atan"}})
      if (name == inverse)
        return make_node(Kind::function, {make_node(Kind::power, {inside, make_number(Rational(-1))})},
                         plain);
    return wrapped(name.c_str(), inside);
  }

  ExpressionRef operator_function() {
    ++position_;
    if (!take(TokenKind::open_brace) || !is(TokenKind::reserved)) return nullptr;
    const std::string name = take_any().text;
    if (!take(TokenKind::close_brace)) return nullptr;
    if (name == "gcd" || name == "lcm") return multi_function(name);
    if (name == "floor" || name == "ceil" || name.starts_with("ar")) return named_function(name);
    const auto inside = argument();
    return inside ? make_node(Kind::call, {inside}, name) : nullptr;
  }

  ExpressionRef multi_function(const std::string& name) {
    const Scripts marks = scripts();
    if (!marks.ok || !take(TokenKind::open_parenthesis)) return nullptr;
    std::vector<ExpressionRef> arguments;
    do {
      auto one = expression();
      if (!one) return nullptr;
      arguments.push_back(std::move(one));
    } while (take(TokenKind::comma));
    if (!take(TokenKind::close_parenthesis)) return nullptr;
    auto result = make_node(Kind::function, std::move(arguments), name);
    return marks.super ? make_node(Kind::power, {result, marks.super}) : result;
  }

  ExpressionRef square_root() {
    ++position_;
    ExpressionRef index;
    if (is(TokenKind::open_bracket) && !(index = enclosed(TokenKind::close_bracket))) return nullptr;
    if (!is(TokenKind::open_brace)) return nullptr;
    const auto base = enclosed(TokenKind::close_brace);
    if (!base) return nullptr;
    const auto exponent =
        index ? make_quotient(make_number(Rational(1)), index) : make_number(Rational(1, 2));
    return exponent ? make_node(Kind::power, {base, exponent}) : nullptr;
  }

  ExpressionRef power_of_e() {
    ++position_;
    auto e = make_node(Kind::euler, {});
    if (!take(TokenKind::caret)) return e;
    const auto exponent = script();
    return exponent ? make_node(Kind::power, {e, exponent}) : nullptr;
  }

  // \sum_{i=1}^{n} body
  ExpressionRef series(const std::string& name) {
    ExpressionRef variable, first, last;
    for (int i = 0; i < 2; ++i) {
      if (take(TokenKind::caret)) {
        if (!(last = script())) return nullptr;
      } else if (take(TokenKind::underscore)) {
        if (!take(TokenKind::open_brace) || !(variable = atom()) || variable->kind != Kind::symbol ||
            !take_equality_or_membership() || !(first = expression()) || !take(TokenKind::close_brace))
          return nullptr;
      }
    }
    if (!variable || !last) return nullptr;
    if (depth_ >= kMaxDepth) return nullptr;
    ++depth_;
    const auto body = product(Functions::allowed);
    --depth_;
    return body ? make_node(Kind::series, {body, variable, first, last}, name) : nullptr;
  }

  // \lim and \int are compared as written.
  ExpressionRef unevaluated(const std::string& name) {
    std::vector<ExpressionRef> children;
    for (int i = 0; i < 2; ++i) {
      if (take(TokenKind::underscore)) {
        if (is(TokenKind::open_brace)) {
          ++position_;
          do {
            auto part = expression();
            if (!part) return nullptr;
            children.push_back(std::move(part));
          } while (take(TokenKind::arrow));
          if (!take(TokenKind::close_brace)) return nullptr;
        } else {
          auto part = atom();
          if (!part) return nullptr;
          children.push_back(std::move(part));
        }
      } else if (take(TokenKind::caret)) {
        auto part = script();
        if (!part) return nullptr;
        children.push_back(std::move(part));
      }
    }
    if (depth_ >= kMaxDepth) return nullptr;
    ++depth_;
    auto body = name == "\\int" ? sum() : product(Functions::allowed);
    --depth_;
    if (!body) return nullptr;
    children.push_back(std::move(body));
    return make_node(Kind::opaque, std::move(children), name);
  }

  bool skip_subscript() { return take(TokenKind::underscore) && script() != nullptr; }

  // Text of a subscript as it becomes part of a name: x_{1} and x_1 are one symbol.
  bool append_subscript(std::string& name) {
    ++position_;
    std::string text;
    if (take(TokenKind::open_brace)) {
      int depth = 1;
      while (position_ < tokens_.size()) {
        if (is(TokenKind::open_brace)) ++depth;
        if (is(TokenKind::close_brace) && --depth == 0) break;
        text += strip(take_any().spelling);
      }
      if (!take(TokenKind::close_brace)) return false;
    } else {
      if (position_ >= tokens_.size()) return false;
      text = strip(take_any().spelling);
    }
    if (text.empty()) return false;
    name += count_characters(text) > 1 ? "_{" + text + "}" : "_" + text;
    return true;
  }

  // The name of a letter, Greek letter, symbol or accent with its subscript; empty when there is none here.
  std::string symbol_name() {
    if (!is(TokenKind::letter) && !is(TokenKind::greek) && !is(TokenKind::other_symbol) &&
        !is(TokenKind::accent))
      return "";
    std::string name = take_any().text;
    if (is(TokenKind::underscore) && !append_subscript(name)) return "";
    return dialect_ == LatexDialect::reference ? to_lower(name) : name;
  }

  // A symbol with sub- and superscript.
  ExpressionRef symbol_atom() {
    if (is(TokenKind::letter) && tokens_[position_].text == (dialect_ == LatexDialect::strict ? "i" : "I") &&
        !is_at(position_ + 1, TokenKind::underscore)) {
      ++position_;
      return make_node(Kind::imaginary, {});
    }
    const bool is_pi = is(TokenKind::greek) && tokens_[position_].text == "pi" &&
                       !is_at(position_ + 1, TokenKind::underscore);
    const std::string name = symbol_name();
    if (name.empty()) return nullptr;
    auto symbol = is_pi ? make_node(Kind::pi, {}) : make_symbol(name);
    if (!take(TokenKind::caret)) return symbol;
    if (depth_ >= kMaxDepth) return nullptr;
    ++depth_;
    const auto exponent = script();
    --depth_;
    if (!exponent) return nullptr;
    if (is(TokenKind::underscore) && !skip_subscript()) return nullptr;
    return make_node(Kind::power, {symbol, exponent});
  }

  ExpressionRef atom() {
    if (position_ >= tokens_.size()) return nullptr;
    switch (tokens_[position_].kind) {
      case TokenKind::number:
        return number();
      case TokenKind::percent: {
        const auto value = plain_number(take_any().text);
        return value ? make_node(Kind::percent, {value}) : nullptr;
      }
      case TokenKind::scientific:
        return scientific(take_any().text);
      case TokenKind::capital_e:
        ++position_;
        return make_symbol(dialect_ == LatexDialect::reference ? "e" : "E");
      case TokenKind::differential:
        return make_symbol("d" + take_any().text);
      case TokenKind::infinity:
        ++position_;
        return make_node(Kind::infinity, {});
      default:
        return symbol_atom();
    }
  }

  static ExpressionRef plain_number(std::string_view text) {
    auto value = Rational::from_decimal(text);
    return value ? make_number(*std::move(value), text.find('.') != std::string_view::npos) : nullptr;
  }

  static ExpressionRef scientific(std::string_view text) {
    const size_t e = text.find_first_of("eE");
    const auto value = Rational::from_decimal(text.substr(0, e));
    std::string exponent(text.substr(e + 1));
    if (exponent.starts_with('+')) exponent.erase(0, 1);
    if (!value || exponent.size() > 5) return nullptr;
    const auto scale = Rational::power(Rational(10), std::stoi(exponent), 20000);
    return scale ? make_number(*value * *scale, true) : nullptr;
  }

  // A number; the reference drops a base written as subscript, the strict dialect reads it.
  ExpressionRef number() {
    const std::string digits = take_any().text;
    if (dialect_ == LatexDialect::strict && is(TokenKind::small_e)) {
      size_t end = position_ + 1;
      const bool is_signed = is_at(end, TokenKind::minus) || is_at(end, TokenKind::plus);
      const bool is_negative = is_at(end, TokenKind::minus);
      if (is_signed) ++end;
      if (is_at(end, TokenKind::number) && tokens_[end].text.find('.') == std::string::npos) {
        position_ = end + 1;
        return scientific(digits + (is_negative ? "e-" : "e") + tokens_[end].text);
      }
    }
    if (!is(TokenKind::underscore)) return plain_number(digits);
    ++position_;
    const auto base = script();
    if (!base) return nullptr;
    return dialect_ == LatexDialect::reference ? plain_number(digits) : number_in_base(digits, *base);
  }

  static ExpressionRef number_in_base(const std::string& digits, const Expression& base) {
    const auto size = is_integer_number(base) ? base.value.as_int64() : std::nullopt;
    if (!size || *size < 2 || *size > 36) return nullptr;
    Rational total;
    for (const char c : digits) {
      if (!is_digit(c) || c - '0' >= *size) return nullptr;
      total = total * Rational(*size) + Rational(c - '0');
    }
    return make_number(total);
  }
};

// -1,234.5: its digits without commas; empty when it is no such number.
std::string ungrouped_number(std::string_view text) {
  text = strip(text);
  std::string digits;
  if (text.starts_with('-')) {
    digits = "-";
    text.remove_prefix(1);
  }
  size_t i = 0;
  while (i < text.size() && is_digit(text[i])) ++i;
  if (i == 0 || i > 3) return "";
  digits.append(text.substr(0, i));
  size_t groups = 0;
  while (i + 3 < text.size() && text[i] == ',' && is_digit(text[i + 1]) && is_digit(text[i + 2]) &&
         is_digit(text[i + 3])) {
    digits.append(text.substr(i + 1, 3));
    i += 4;
    ++groups;
  }
  if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) {
    const size_t begin = i++;
    while (i < text.size() && is_digit(text[i])) ++i;
    digits.append(text.substr(begin, i - begin));
  }
  if (groups == 0 || i != text.size()) return "";
  // 0,125 is a decimal comma.
  return groups == 1 && digits.starts_with('0') && digits.size() == 4 ? "0." + digits.substr(1) : digits;
}

}  // namespace

ExpressionRef parse_latex_or_number(std::string_view latex, LatexDialect dialect) {
  const std::string number = ungrouped_number(latex);
  return parse_latex(number.empty() ? latex : std::string_view(number), dialect);
}

ExpressionRef parse_latex(std::string_view latex, LatexDialect dialect) {
  auto tokens = tokenize_latex(latex);
  if (!tokens || tokens->empty()) return nullptr;
  return LatexParser(std::move(*tokens), dialect).run();
}

}  // namespace ropd::grading
