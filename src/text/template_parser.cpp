// Recursive descent, one function per level of precedence; above 300 lines because the grammar is one thing.
#include "text/template_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include "base/error.h"
#include "text/template_lexer.h"

namespace ropd::text {

namespace {

using Word = TemplateWord::Kind;
using Node = TemplateExpression::Kind;
using Statement = TemplateStatement::Kind;

constexpr int kMaxNesting = 100;  // of tags and brackets
constexpr int kMaxDepth = 300;    // of an expression's tree, which is as deep as a chain of operators is long

class Parser {
 public:
  Parser(std::vector<TemplateWord> words, const std::string& where)
      : words_(std::move(words)), where_(where) {}

  StatementList parse() {
    StatementList body = statements({});
    if (!is(Word::end)) refuse("unexpected tag");
    return body;
  }

 private:
  std::vector<TemplateWord> words_;
  const std::string& where_;
  size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // `for` bodies around the current place

  // Counts one level of recursion for its lifetime.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting)
        fail(parser_.where_, ":", parser_.word().line, ": nested deeper than ", kMaxNesting, " levels");
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --parser_.nesting_; }

   private:
    Parser& parser_;
  };

  const TemplateWord& word() const { return words_[at_]; }
  bool is(Word kind) const { return word().kind == kind; }
  bool is_symbol(std::string_view text) const { return is(Word::symbol) && word().text == text; }
  bool is_name(std::string_view text) const { return is(Word::name) && word().text == text; }
  TemplateWord take() { return words_[is(Word::end) ? at_ : at_++]; }

  [[noreturn]] void refuse(std::string_view what) const {
    const TemplateWord& found = word();
    constexpr std::array<std::string_view, 11> kKinds = {
        "text", "{%", "%}", "{{", "}}", "", "a string", "", "", "", "the end of the template"};
    const auto kind = kKinds[static_cast<size_t>(found.kind)];
    fail(where_, ":", found.line, ": ", what, ", found ",
         kind.empty() ? "\"" + found.text + "\"" : std::string(kind));
  }

  bool take_symbol(std::string_view text) {
    if (!is_symbol(text)) return false;
    ++at_;
    return true;
  }
  bool take_name(std::string_view text) {
    if (!is_name(text)) return false;
    ++at_;
    return true;
  }
  void expect_symbol(std::string_view text) {
    if (!take_symbol(text)) refuse("expected \"" + std::string(text) + "\"");
  }
  std::string expect_name(std::string_view what) {
    if (!is(Word::name)) refuse("expected " + std::string(what));
    return take().text;
  }
  void expect(Word kind, std::string_view what) {
    if (!is(kind)) refuse("expected " + std::string(what));
    ++at_;
  }

  ExpressionPtr node(Node kind, int line) const {
    auto result = std::make_unique<TemplateExpression>();
    result->kind = kind;
    result->line = line;
    return result;
  }
  ExpressionPtr node(Node kind, int line, std::string text, ExpressionPtr first,
                     ExpressionPtr second = nullptr) const {
    auto result = node(kind, line);
    result->text = std::move(text);
    adopt(*result, std::move(first));
    if (second) adopt(*result, std::move(second));
    return result;
  }
  void deepen(TemplateExpression& parent, const ExpressionPtr& child) const {
    if (child) parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > kMaxDepth)
      fail(where_, ":", parent.line, ": an expression has more than ", kMaxDepth, " operators in one chain");
  }
  void adopt(TemplateExpression& parent, ExpressionPtr child) const {
    deepen(parent, child);
    parent.children.push_back(std::move(child));
  }
  void give_arguments(TemplateExpression& parent) {
    parent.arguments = arguments();
    for (const auto& argument : parent.arguments.positional) deepen(parent, argument);
    for (const auto& [name, argument] : parent.arguments.named) deepen(parent, argument);
  }

  // ---- statements ----

  bool is_tag(std::string_view name) const {
    return is(Word::block_begin) && words_[at_ + 1].kind == Word::name && words_[at_ + 1].text == name;
  }

  // Statements up to a tag of `ends` (left in place) or the end of the template.
  StatementList statements(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    StatementList result;
    while (!is(Word::end)) {
      if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_tag(end); })) break;
      result.push_back(statement());
    }
    return result;
  }

  std::unique_ptr<TemplateStatement> statement() {
    auto result = std::make_unique<TemplateStatement>();
    result->line = word().line;
    if (is(Word::text)) {
      result->kind = Statement::text;
      result->text = take().text;
    } else if (is(Word::print_begin)) {
      ++at_;
      result->kind = Statement::print;
      result->expression = tuple_or_expression();
      expect(Word::print_end, "}}");
    } else {
      expect(Word::block_begin, "a tag");
      const std::string name = expect_name("a tag name");
      tag(*result, name);
    }
    return result;
  }

  void tag(TemplateStatement& result, const std::string& name) {
    if (name == "if") return condition(result);
    if (name == "for") return loop(result);
    if (name == "set") return assignment(result);
    if (name == "macro") return macro(result);
    if (name == "generation") {
      result.kind = Statement::group;
      end_of_tag();
      result.body = statements({"endgeneration"});
      return closing("endgeneration", result.line);
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) fail(where_, ":", result.line, ": \"", name, "\" outside a for loop");
      result.kind = name == "break" ? Statement::leave : Statement::next;
      return end_of_tag();
    }
    fail(where_, ":", result.line, ": the tag \"", name,
         "\" is not supported or stands without its opening tag (supported: if, for, set, macro, break, "
         "continue, generation)");
  }

  void end_of_tag() { expect(Word::block_end, "%}"); }

  void closing(std::string_view name, int opening_line) {
    if (!is_tag(name))
      fail(where_, ":", word().line, ": expected {% ", name, " %} for the tag of line ", opening_line);
    at_ += 2;
    end_of_tag();
  }

  void condition(TemplateStatement& result) {
    result.kind = Statement::condition;
    auto test = or_expression();
    end_of_tag();
    while (true) {
      auto body = statements({"elif", "else", "endif"});
      result.branches.emplace_back(std::move(test), std::move(body));
      if (!is_tag("elif")) break;
      at_ += 2;
      test = or_expression();
      end_of_tag();
    }
    if (is_tag("else")) {
      at_ += 2;
      end_of_tag();
      auto body = statements({"endif"});
      result.branches.emplace_back(nullptr, std::move(body));
    }
    closing("endif", result.line);
  }

  std::vector<TemplateTarget> target_names(bool allows_attribute) {
    std::vector<TemplateTarget> targets;
    const bool has_bracket = take_symbol("(");
    do {
      TemplateTarget target;
      target.name = expect_name("a variable name");
      if (allows_attribute && take_symbol(".")) target.attribute = expect_name("an attribute name");
      targets.push_back(std::move(target));
    } while (take_symbol(","));
    if (has_bracket) expect_symbol(")");
    return targets;
  }

  void loop(TemplateStatement& result) {
    result.kind = Statement::loop;
    result.targets = target_names(false);
    if (!take_name("in")) refuse("expected \"in\"");
    result.expression = or_expression();
    if (take_name("if")) result.filter = expression();
    if (is_name("recursive")) refuse("recursive loops are not supported");
    end_of_tag();
    ++loops_;
    result.body = statements({"else", "endfor"});
    --loops_;
    if (is_tag("else")) {
      at_ += 2;
      end_of_tag();
      result.otherwise = statements({"endfor"});
    }
    closing("endfor", result.line);
  }

  void assignment(TemplateStatement& result) {
    result.targets = target_names(true);
    if (take_symbol("=")) {
      result.kind = Statement::assign;
      result.expression = tuple_or_expression();
      return end_of_tag();
    }
    if (result.targets.size() != 1 || is_symbol("|")) refuse("expected \"=\"");
    result.kind = Statement::capture;
    end_of_tag();
    result.body = statements({"endset"});
    closing("endset", result.line);
  }

  void macro(TemplateStatement& result) {
    result.kind = Statement::macro;
    result.macro = std::make_unique<MacroStatement>();
    result.macro->name = expect_name("a macro name");
    expect_symbol("(");
    while (!take_symbol(")")) {
      if (!result.macro->parameters.empty()) expect_symbol(",");
      std::string name = expect_name("a parameter name");
      ExpressionPtr value;
      if (take_symbol("=")) value = expression();
      result.macro->parameters.emplace_back(std::move(name), std::move(value));
    }
    end_of_tag();
    const int outer_loops = std::exchange(loops_, 0);
    result.macro->body = statements({"endmacro"});
    loops_ = outer_loops;
    closing("endmacro", result.line);
  }

  // ---- expressions ----

  ExpressionPtr tuple_or_expression() {
    auto first = expression();
    if (!is_symbol(",")) return first;
    auto result = node(Node::list, first->line);
    adopt(*result, std::move(first));
    while (take_symbol(",") && !is(Word::block_end) && !is(Word::print_end)) adopt(*result, expression());
    return result;
  }

  ExpressionPtr expression() {
    const Level level(*this);
    auto value = or_expression();
    while (is_name("if")) {
      const int line = take().line;
      auto result = node(Node::conditional, line);
      adopt(*result, std::move(value));
      adopt(*result, or_expression());
      adopt(*result, take_name("else") ? expression() : nullptr);
      value = std::move(result);
    }
    return value;
  }

  // A left-associative chain of operators; `accept` gives the operator's text or nothing.
  ExpressionPtr chain(Node kind, ExpressionPtr (Parser::*operand)(), auto&& accept) {
    auto left = (this->*operand)();
    while (true) {
      const int line = word().line;
      const std::string found = accept();
      if (found.empty()) return left;
      left = node(kind, line, found, std::move(left), (this->*operand)());
    }
  }

  std::string accept_symbol(std::initializer_list<std::string_view> symbols) {
    for (const std::string_view symbol : symbols)
      if (take_symbol(symbol)) return std::string(symbol);
    return "";
  }

  ExpressionPtr or_expression() {
    return chain(Node::logical_or, &Parser::and_expression, [&] { return take_name("or") ? "or" : ""; });
  }
  ExpressionPtr and_expression() {
    return chain(Node::logical_and, &Parser::not_expression, [&] { return take_name("and") ? "and" : ""; });
  }

  ExpressionPtr not_expression() {
    if (!is_name("not")) return comparison();
    const Level level(*this);
    const int line = take().line;
    return node(Node::logical_not, line, "not", not_expression());
  }

  std::string accept_comparison() {
    if (take_name("in")) return "in";
    if (is_name("not") && words_[at_ + 1].kind == Word::name && words_[at_ + 1].text == "in") {
      at_ += 2;
      return "not in";
    }
    return accept_symbol({"==", "!=", "<=", ">=", "<", ">"});
  }

  ExpressionPtr comparison() {
    auto left = sum();
    const int line = word().line;
    const std::string found = accept_comparison();
    if (found.empty()) return left;
    auto result = node(Node::compare, line, found, std::move(left), sum());
    if (!accept_comparison().empty())
      fail(where_, ":", line, ": chained comparisons (a < b < c) are not supported");
    return result;
  }

  ExpressionPtr sum() {
    return chain(Node::binary, &Parser::concatenation, [&] { return accept_symbol({"+", "-"}); });
  }
  ExpressionPtr concatenation() {
    return chain(Node::binary, &Parser::product, [&] { return accept_symbol({"~"}); });
  }
  ExpressionPtr product() {
    return chain(Node::binary, &Parser::power, [&] { return accept_symbol({"*", "//", "/", "%"}); });
  }
  ExpressionPtr power() {
    return chain(Node::binary, &Parser::unary, [&] { return accept_symbol({"**"}); });
  }

  ExpressionPtr unary() { return filters(unary_without_filters()); }

  ExpressionPtr unary_without_filters() {
    const Level level(*this);
    if (is_symbol("-") || is_symbol("+")) {
      const auto sign = take();
      return postfix(
          node(sign.text == "-" ? Node::negate : Node::plus, sign.line, sign.text, unary_without_filters()));
    }
    return postfix(primary());
  }

  ExpressionPtr primary() {
    const TemplateWord first = take();
    auto literal = [&](TemplateValue value) {
      auto result = node(Node::literal, first.line);
      result->value = std::move(value);
      return result;
    };
    switch (first.kind) {
      case Word::name:
        if (first.text == "true" || first.text == "True") return literal(TemplateValue::boolean(true));
        if (first.text == "false" || first.text == "False") return literal(TemplateValue::boolean(false));
        if (first.text == "none" || first.text == "None") return literal(TemplateValue::none());
        {
          auto result = node(Node::name, first.line);
          result->text = first.text;
          return result;
        }
      case Word::string: {
        std::string text = first.text;
        while (is(Word::string)) text += take().text;
        return literal(TemplateValue::string(std::move(text)));
      }
      case Word::integer:
        return literal(TemplateValue::integer(number<int64_t>(first)));
      case Word::real:
        return literal(TemplateValue::real(number<double>(first)));
      default:
        break;
    }
    if (first.kind == Word::symbol) {
      if (first.text == "(") return parenthesis(first.line);
      if (first.text == "[") return list(first.line);
      if (first.text == "{") return dict(first.line);
    }
    if (at_ > 0 && !is(Word::end)) --at_;
    refuse("expected an expression");
  }

  template <class Number>
  Number number(const TemplateWord& found) const {
    Number value{};
    const auto end = found.text.data() + found.text.size();
    const auto result = std::from_chars(found.text.data(), end, value);
    if (result.ec != std::errc{} || result.ptr != end)
      fail(where_, ":", found.line, ": the number ", found.text, " is out of range");
    return value;
  }

  ExpressionPtr parenthesis(int line) {
    if (take_symbol(")")) return node(Node::list, line);
    auto first = expression();
    if (take_symbol(")")) return first;
    auto result = node(Node::list, line);
    adopt(*result, std::move(first));
    while (take_symbol(",") && !is_symbol(")")) adopt(*result, expression());
    expect_symbol(")");
    return result;
  }

  ExpressionPtr list(int line) {
    auto result = node(Node::list, line);
    while (!take_symbol("]")) {
      if (!result->children.empty()) {
        expect_symbol(",");
        if (take_symbol("]")) break;
      }
      adopt(*result, expression());
    }
    return result;
  }

  ExpressionPtr dict(int line) {
    auto result = node(Node::dict, line);
    while (!take_symbol("}")) {
      if (!result->children.empty()) {
        expect_symbol(",");
        if (take_symbol("}")) break;
      }
      adopt(*result, expression());
      expect_symbol(":");
      adopt(*result, expression());
    }
    return result;
  }

  ExpressionPtr postfix(ExpressionPtr value) {
    while (true) {
      const int line = word().line;
      if (take_symbol(".")) {
        if (is(Word::integer)) refuse("attributes by number are not supported (use [n])");
        value = node(Node::attribute, line, expect_name("an attribute name"), std::move(value));
      } else if (take_symbol("[")) {
        value = subscript(std::move(value), line);
      } else if (is_symbol("(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }

  ExpressionPtr subscript(ExpressionPtr value, int line) {
    ExpressionPtr parts[3];
    int count = 0;
    bool is_slice = false;
    while (!is_symbol("]")) {
      if (take_symbol(":")) {
        is_slice = true;
        if (++count > 2) refuse("a slice has at most three parts");
      } else {
        if (parts[count]) refuse("expected \"]\"");
        parts[count] = expression();
      }
    }
    expect_symbol("]");
    if (!is_slice && !parts[0]) refuse("an empty subscript before this");
    if (!is_slice) return node(Node::subscript, line, "", std::move(value), std::move(parts[0]));
    auto result = node(Node::slice, line);
    adopt(*result, std::move(value));
    for (auto& part : parts) adopt(*result, std::move(part));
    return result;
  }

  TemplateArguments arguments() {
    TemplateArguments result;
    expect_symbol("(");
    bool is_first = true;
    while (!take_symbol(")")) {
      if (!is_first) {
        expect_symbol(",");
        if (take_symbol(")")) break;
      }
      is_first = false;
      if (is_symbol("*") || is_symbol("**")) refuse("arguments with * are not supported");
      if (is(Word::name) && words_[at_ + 1].kind == Word::symbol && words_[at_ + 1].text == "=") {
        std::string name = take().text;
        ++at_;
        result.named.emplace_back(std::move(name), expression());
      } else {
        if (!result.named.empty()) refuse("a positional argument after a named one");
        result.positional.push_back(expression());
      }
    }
    return result;
  }

  ExpressionPtr call(ExpressionPtr callee) {
    auto result = node(Node::call, word().line);
    adopt(*result, std::move(callee));
    give_arguments(*result);
    return result;
  }

  ExpressionPtr filters(ExpressionPtr value) {
    while (true) {
      const int line = word().line;
      if (take_symbol("|")) {
        value = node(Node::filter, line, expect_name("a filter name"), std::move(value));
        if (is_symbol("(")) give_arguments(*value);
      } else if (take_name("is")) {
        value = test(std::move(value), line);
      } else if (is_symbol("(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }

  ExpressionPtr test(ExpressionPtr value, int line) {
    const bool is_negated = take_name("not");
    auto result = node(Node::test, line, expect_name("a test name"), std::move(value));
    if (is_symbol("(")) {
      give_arguments(*result);
    } else if (is(Word::string) || is(Word::integer) || is(Word::real) || is_symbol("[") || is_symbol("{") ||
               (is(Word::name) && !is_name("else") && !is_name("or") && !is_name("and") && !is_name("if") &&
                !is_name("is") && !is_name("in") && !is_name("not"))) {
      result->arguments.positional.push_back(postfix(primary()));
      deepen(*result, result->arguments.positional.back());
    }
    return is_negated ? node(Node::logical_not, line, "not", std::move(result)) : std::move(result);
  }
};

}  // namespace

StatementList parse_template(std::string_view jinja, const std::string& where) {
  return Parser(lex_template(jinja, where), where).parse();
}

}  // namespace ropd::text
