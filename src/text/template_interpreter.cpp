#include "text/template_interpreter.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "text/template_builtins.h"
#include "text/unicode.h"

namespace ropd::text {

namespace {

using Kind = TemplateValue::Kind;
using Node = TemplateExpression::Kind;
using Statement = TemplateStatement::Kind;

enum class Flow { on, leave, next };  // what a statement list ended with

class Interpreter {
 public:
  Interpreter(TemplateDict variables, const std::string& where) : where_(where), meter_(where) {
    scopes_.push_back(std::move(variables));
  }

  std::string run(const StatementList& statements) {
    execute(statements);
    return std::move(output_);
  }

 private:
  const std::string& where_;
  TemplateMeter meter_;
  std::vector<TemplateDict> scopes_;  // innermost last; the first holds the template's variables
  std::string output_;
  int recursion_ = 0;

  class Level {
   public:
    Level(Interpreter& interpreter, int line) : interpreter_(interpreter) {
      interpreter_.meter_.charge(1, line);
      if (++interpreter_.recursion_ > TemplateLimits::kMaxRecursion)
        interpreter_.refuse(line, "recursion deeper than ", TemplateLimits::kMaxRecursion, " levels");
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --interpreter_.recursion_; }

   private:
    Interpreter& interpreter_;
  };

  template <class... Parts>
  [[noreturn]] void refuse(int line, const Parts&... parts) const {
    fail(where_, ":", line, ": ", parts...);
  }

  // ---- variables ----

  TemplateValue look_up(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      for (const auto& [key, value] : *scope)
        if (key == name) return value;
    return TemplateValue::undefined(name);
  }

  void set(const std::string& name, TemplateValue value) {
    for (auto& [key, old] : scopes_.back())
      if (key == name) {
        old = std::move(value);
        return;
      }
    scopes_.back().emplace_back(name, std::move(value));
  }

  void assign(const TemplateTarget& target, TemplateValue value, int line) {
    if (target.attribute.empty()) return set(target.name, std::move(value));
    const TemplateValue space = look_up(target.name);
    if (!space.is(Kind::name_space))
      refuse(line, "cannot set an attribute of \"", target.name, "\", which is ", space.kind_name(),
             " (expected a namespace)");
    space.assign(target.attribute, std::move(value));
  }

  void assign_all(const std::vector<TemplateTarget>& targets, TemplateValue value, int line) {
    if (targets.size() == 1) return assign(targets[0], std::move(value), line);
    if (!value.is(Kind::list) || value.as_list().size() != targets.size())
      refuse(line, "cannot unpack a value that is ", value.kind_name(), " into ", targets.size(), " names");
    for (size_t i = 0; i < targets.size(); ++i) assign(targets[i], value.as_list()[i], line);
  }

  // ---- statements ----

  Flow execute(const StatementList& statements) {
    for (const auto& statement : statements)
      if (const Flow flow = execute(*statement); flow != Flow::on) return flow;
    return Flow::on;
  }

  Flow execute(const TemplateStatement& statement) {
    const Level level(*this, statement.line);
    switch (statement.kind) {
      case Statement::text:
        print(statement.text, statement.line);
        break;
      case Statement::print:
        print(text_of(evaluate(*statement.expression), statement.line), statement.line);
        break;
      case Statement::condition:
        for (const auto& [test, body] : statement.branches)
          if (!test || evaluate(*test).is_true()) return execute(body);
        break;
      case Statement::loop:
        loop(statement);
        break;
      case Statement::assign:
        assign_all(statement.targets, evaluate(*statement.expression), statement.line);
        break;
      case Statement::capture: {
        TemplateValue captured = TemplateValue::string(capture(statement.body));
        assign(statement.targets[0], std::move(captured), statement.line);
        break;
      }
      case Statement::macro:
        set(statement.macro->name, TemplateValue::macro(statement.macro.get()));
        break;
      case Statement::leave:
        return Flow::leave;
      case Statement::next:
        return Flow::next;
      case Statement::group:
        return execute(statement.body);
    }
    return Flow::on;
  }

  void print(std::string_view text, int line) {
    meter_.charge_bytes(text.size(), line);
    if (text.size() > TemplateLimits::kMaxOutputBytes - output_.size())
      refuse(line, "the output exceeds ", TemplateLimits::kMaxOutputBytes, " bytes");
    output_ += text;
  }

  std::string text_of(const TemplateValue& value, int line) {
    meter_.charge(value.weight(), line);
    return value.text();
  }

  std::string capture(const StatementList& body) {
    std::string outer = std::exchange(output_, "");
    execute(body);
    return std::exchange(output_, std::move(outer));
  }

  TemplateList selected_items(const TemplateStatement& statement) {
    TemplateList items = items_of(evaluate(*statement.expression), site("for", statement.line));
    if (!statement.filter) return items;
    TemplateList kept;
    for (TemplateValue& item : items) {
      scopes_.emplace_back();
      assign_all(statement.targets, item, statement.line);
      const bool is_kept = evaluate(*statement.filter).is_true();
      scopes_.pop_back();
      if (is_kept) kept.push_back(std::move(item));
    }
    return kept;
  }

  void loop(const TemplateStatement& statement) {
    const TemplateList items = selected_items(statement);
    for (size_t index = 0; index < items.size(); ++index) {
      meter_.charge(1, statement.line);
      scopes_.emplace_back();  // what the body sets ends with the round
      set("loop", loop_variable(items, index));
      assign_all(statement.targets, items[index], statement.line);
      const Flow flow = execute(statement.body);
      scopes_.pop_back();
      if (flow == Flow::leave) break;
    }
    if (items.empty()) execute(statement.otherwise);
  }

  static TemplateValue loop_variable(const TemplateList& items, size_t index) {
    const auto integer = [](size_t value) { return TemplateValue::integer(static_cast<int64_t>(value)); };
    const size_t count = items.size();
    return TemplateValue::dict({
        {"index", integer(index + 1)},
        {"index0", integer(index)},
        {"first", TemplateValue::boolean(index == 0)},
        {"last", TemplateValue::boolean(index + 1 == count)},
        {"length", integer(count)},
        {"revindex", integer(count - index)},
        {"revindex0", integer(count - index - 1)},
        {"previtem", index > 0 ? items[index - 1] : TemplateValue::undefined("loop.previtem")},
        {"nextitem", index + 1 < count ? items[index + 1] : TemplateValue::undefined("loop.nextitem")},
    });
  }

  // ---- expressions ----

  TemplateCall site(std::string_view name, int line) {
    return {name, TemplateValue(), {}, {}, line, where_, meter_};
  }

  TemplateCall call_of(const TemplateExpression& node, std::string_view name, TemplateValue value) {
    TemplateCall call{name, std::move(value), {}, {}, node.line, where_, meter_};
    for (const auto& argument : node.arguments.positional) call.positional.push_back(evaluate(*argument));
    for (const auto& [key, argument] : node.arguments.named)
      call.named.emplace_back(key, evaluate(*argument));
    return call;
  }

  TemplateValue evaluate(const TemplateExpression& node) {
    const Level level(*this, node.line);
    switch (node.kind) {
      case Node::literal:
        return node.value;
      case Node::name:
        return look_up(node.text);
      case Node::list:
      case Node::dict:
        return collection(node);
      case Node::attribute:
        return attribute(evaluate(*node.children[0]), node);
      case Node::subscript:
        return subscript(node);
      case Node::slice:
        return slice(node);
      case Node::call:
        return call(node);
      case Node::filter:
        return apply_filter(call_of(node, node.text, evaluate(*node.children[0])));
      case Node::test:
        return TemplateValue::boolean(apply_test(call_of(node, node.text, evaluate(*node.children[0]))));
      case Node::negate:
      case Node::plus:
        return signed_number(node);
      case Node::logical_not:
        return TemplateValue::boolean(!evaluate(*node.children[0]).is_true());
      case Node::logical_and: {
        TemplateValue left = evaluate(*node.children[0]);
        return left.is_true() ? evaluate(*node.children[1]) : left;
      }
      case Node::logical_or: {
        TemplateValue left = evaluate(*node.children[0]);
        return left.is_true() ? left : evaluate(*node.children[1]);
      }
      case Node::binary:
        return binary(node);
      case Node::compare:
        return TemplateValue::boolean(compare(node));
      case Node::conditional:
        if (evaluate(*node.children[1]).is_true()) return evaluate(*node.children[0]);
        return node.children[2] ? evaluate(*node.children[2]) : TemplateValue::undefined("the missing else");
    }
    refuse(node.line, "an expression of unknown kind");
  }

  TemplateValue collection(const TemplateExpression& node) {
    if (node.kind == Node::list) {
      TemplateList items;
      for (const auto& child : node.children) items.push_back(evaluate(*child));
      return TemplateValue::list(std::move(items));
    }
    TemplateDict entries;
    for (size_t i = 0; i < node.children.size(); i += 2) {
      const TemplateValue key = evaluate(*node.children[i]);
      if (!key.is(Kind::string)) refuse(node.line, "a dict key is ", key.kind_name(), " (expected a string)");
      TemplateValue value = evaluate(*node.children[i + 1]);
      const auto is_same = [&](const auto& entry) { return entry.first == key.as_string(); };
      if (const auto old = std::find_if(entries.begin(), entries.end(), is_same); old != entries.end())
        old->second = std::move(value);
      else
        entries.emplace_back(key.as_string(), std::move(value));
    }
    return TemplateValue::dict(std::move(entries));
  }

  void refuse_undefined(const TemplateValue& value, int line, std::string_view use) const {
    if (value.is(Kind::undefined))
      refuse(line, "\"", value.undefined_name(), "\" is undefined, so it has no ", use);
  }

  TemplateValue attribute(const TemplateValue& object, const TemplateExpression& node) {
    refuse_undefined(object, node.line, "attribute \"" + node.text + "\"");
    if (object.is(Kind::dict) && is_dict_method(node.text))
      refuse(node.line, "the dict method \"", node.text, "\" is used without a call (write [\"", node.text,
             "\"] for the key)");
    if (object.is(Kind::dict) || object.is(Kind::name_space))
      if (const TemplateValue* found = object.find(node.text)) return *found;
    return TemplateValue::undefined(node.text);
  }

  TemplateValue subscript(const TemplateExpression& node) {
    const TemplateValue object = evaluate(*node.children[0]);
    const TemplateValue key = evaluate(*node.children[1]);
    refuse_undefined(object, node.line, "item " + (key.weight() < 100 ? key.text() : "of that name"));
    if (key.is(Kind::string) && (object.is(Kind::dict) || object.is(Kind::name_space))) {
      const TemplateValue* found = object.find(key.as_string());
      return found != nullptr ? *found : TemplateValue::undefined(key.as_string());
    }
    if (!key.is(Kind::integer)) return TemplateValue::undefined("item");
    if (!object.is(Kind::list) && !object.is(Kind::string))
      return TemplateValue::undefined("item " + key.text());
    const TemplateList items =
        object.is(Kind::list) ? TemplateList{} : items_of(object, site("[]", node.line));
    const TemplateList& list = object.is(Kind::list) ? object.as_list() : items;
    const auto count = static_cast<int64_t>(list.size());
    const int64_t index = key.as_integer() < 0 ? key.as_integer() + count : key.as_integer();
    if (index < 0 || index >= count) return TemplateValue::undefined("item " + key.text());
    return list[static_cast<size_t>(index)];
  }

  std::optional<int64_t> slice_part(const ExpressionPtr& part) {
    if (!part) return std::nullopt;
    const TemplateValue value = evaluate(*part);
    if (value.is(Kind::none)) return std::nullopt;
    if (!value.is(Kind::integer))
      refuse(part->line, "a slice bound is ", value.kind_name(), " (expected an integer)");
    return value.as_integer();
  }

  // Python's rules: negative bounds count from the end, bounds outside are clamped.
  TemplateValue slice(const TemplateExpression& node) {
    const TemplateValue object = evaluate(*node.children[0]);
    refuse_undefined(object, node.line, "slice");
    if (!object.is(Kind::list) && !object.is(Kind::string))
      refuse(node.line, "a value that is ", object.kind_name(), " cannot be sliced");
    const TemplateList items = items_of(object, site("[:]", node.line));
    const auto count = static_cast<int64_t>(items.size());
    const auto begin = slice_part(node.children[1]), end = slice_part(node.children[2]);
    const int64_t step = slice_part(node.children[3]).value_or(1);
    if (step == 0 || step < -count - 1) refuse(node.line, "slice step ", step, " is not supported");
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? count : count - 1;
    const auto clamped = [&](std::optional<int64_t> bound, int64_t if_absent) {
      if (!bound) return if_absent;
      return std::clamp(*bound < 0 ? *bound + count : *bound, lowest, highest);
    };
    const int64_t first = clamped(begin, step > 0 ? 0 : count - 1);
    const int64_t last = clamped(end, step > 0 ? count : -1);
    TemplateList picked;
    std::string text;
    for (int64_t i = first; step > 0 ? i < last : i > last; i += std::min(step, count + 1)) {
      if (object.is(Kind::list))
        picked.push_back(items[static_cast<size_t>(i)]);
      else
        text += items[static_cast<size_t>(i)].as_string();
    }
    return object.is(Kind::list) ? TemplateValue::list(std::move(picked))
                                 : TemplateValue::string(std::move(text));
  }

  TemplateValue call(const TemplateExpression& node) {
    const TemplateExpression& callee = *node.children[0];
    if (callee.kind == Node::attribute) {
      TemplateValue object = evaluate(*callee.children[0]);
      if (!object.is(Kind::name_space)) return call_method(call_of(node, callee.text, std::move(object)));
    }
    const TemplateValue function = callee.kind == Node::name ? look_up(callee.text) : evaluate(callee);
    if (function.is(Kind::macro))
      return call_macro(*function.as_macro(), call_of(node, "macro", TemplateValue()));
    if (callee.kind == Node::name && function.is(Kind::undefined))
      return call_function(call_of(node, callee.text, TemplateValue()));
    refuse(node.line, "a value that is ", function.kind_name(), " cannot be called");
  }

  TemplateValue call_function(const TemplateCall& call) {
    if (call.name == "namespace") {
      if (!call.positional.empty()) call.refuse("namespace() takes named arguments only");
      return TemplateValue::name_space(call.named);
    }
    if (call.name == "raise_exception") {
      const TemplateValue* text = call.argument(0, "message");
      call.refuse("the template refuses the messages: ", text != nullptr ? text->text() : "");
    }
    if (call.name == "range") return range(call);
    call.refuse("the function \"", call.name, "\" is not supported");
  }

  TemplateValue range(const TemplateCall& call) {
    int64_t bounds[3] = {0, 0, 1};
    const size_t count = call.positional.size();
    if (count < 1 || count > 3) call.refuse("range() takes one to three numbers");
    for (size_t i = 0; i < count; ++i) {
      if (!call.positional[i].is(Kind::integer)) call.refuse("range() takes whole numbers");
      bounds[count == 1 ? 1 : i] = call.positional[i].as_integer();
    }
    const auto [begin, end, step] = bounds;
    if (step == 0) call.refuse("range() with step 0");
    TemplateList items;
    for (__int128 i = begin; step > 0 ? i < end : i > end; i += step) {
      meter_.charge(1, call.line);
      items.push_back(TemplateValue::integer(static_cast<int64_t>(i)));
    }
    return TemplateValue::list(std::move(items));
  }

  TemplateValue call_macro(const MacroStatement& macro, const TemplateCall& call) {
    const Level level(*this, call.line);
    if (call.positional.size() > macro.parameters.size())
      call.refuse("macro \"", macro.name, "\" takes ", macro.parameters.size(), " arguments, got ",
                  call.positional.size());
    for (const auto& given : call.named) {
      const auto is_named = [&](const auto& parameter) { return parameter.first == given.first; };
      if (std::none_of(macro.parameters.begin(), macro.parameters.end(), is_named))
        call.refuse("macro \"", macro.name, "\" has no parameter \"", given.first, "\"");
    }
    // A macro sees the template's variables and its own, not those around its call.
    std::vector<TemplateDict> outer = std::exchange(scopes_, {});
    scopes_.push_back(std::move(outer[0]));
    scopes_.emplace_back();
    for (size_t i = 0; i < macro.parameters.size(); ++i) {
      const auto& [name, fallback] = macro.parameters[i];
      const TemplateValue* given = call.argument(i, name);
      set(name, given != nullptr ? *given : fallback ? evaluate(*fallback) : TemplateValue::undefined(name));
    }
    std::string text = capture(macro.body);
    outer[0] = std::move(scopes_[0]);
    scopes_ = std::move(outer);
    return TemplateValue::string(std::move(text));
  }

  TemplateValue signed_number(const TemplateExpression& node) {
    const TemplateValue value = evaluate(*node.children[0]);
    if (!value.is_number()) refuse(node.line, "unary ", node.text, " of a value that is ", value.kind_name());
    if (value.is(Kind::real))
      return TemplateValue::real(node.kind == Node::negate ? -value.as_real() : value.as_real());
    if (node.kind == Node::plus) return TemplateValue::integer(value.as_integer());
    if (value.as_integer() == INT64_MIN) refuse(node.line, "integer overflow");
    return TemplateValue::integer(-value.as_integer());
  }

  bool compare(const TemplateExpression& node) {
    const TemplateValue left = evaluate(*node.children[0]), right = evaluate(*node.children[1]);
    const std::string& sign = node.text;
    meter_.charge(right.weight(), node.line);
    if (sign == "==") return left == right;
    if (sign == "!=") return !(left == right);
    if (sign == "in" || sign == "not in") return contains(right, left, node.line) == (sign == "in");
    int order = 0;
    if (left.is(Kind::string) && right.is(Kind::string)) {
      order = left.as_string().compare(right.as_string());
    } else if (left.is_number() && right.is_number()) {
      order = left.as_real() < right.as_real() ? -1 : left.as_real() > right.as_real() ? 1 : 0;
    } else {
      refuse(node.line, "cannot compare a value that is ", left.kind_name(), " with one that is ",
             right.kind_name());
    }
    if (sign == "<") return order < 0;
    if (sign == "<=") return order <= 0;
    return sign == ">" ? order > 0 : order >= 0;
  }

  bool contains(const TemplateValue& container, const TemplateValue& value, int line) {
    if (container.is(Kind::string)) {
      if (!value.is(Kind::string))
        refuse(line, "\"in\" a string needs a string, found a value that is ", value.kind_name());
      return container.as_string().find(value.as_string()) != std::string::npos;
    }
    if (container.is(Kind::dict))
      return value.is(Kind::string) && container.find(value.as_string()) != nullptr;
    if (container.is(Kind::list))
      return std::find(container.as_list().begin(), container.as_list().end(), value) !=
             container.as_list().end();
    if (container.is(Kind::undefined)) return false;
    refuse(line, "\"in\" a value that is ", container.kind_name());
  }

  TemplateValue binary(const TemplateExpression& node) {
    const TemplateValue left = evaluate(*node.children[0]), right = evaluate(*node.children[1]);
    const std::string& sign = node.text;
    if (sign == "~") return TemplateValue::string(text_of(left, node.line) + text_of(right, node.line));
    if (left.is_number() && right.is_number()) return arithmetic(left, right, node);
    if (sign == "+" && left.is(Kind::string) && right.is(Kind::string)) {
      meter_.charge(left.weight() + right.weight(), node.line);
      return TemplateValue::string(left.as_string() + right.as_string());
    }
    if (sign == "+" && left.is(Kind::list) && right.is(Kind::list)) {
      TemplateList items = items_of(left, site("+", node.line));
      const TemplateList more = items_of(right, site("+", node.line));
      items.insert(items.end(), more.begin(), more.end());
      return TemplateValue::list(std::move(items));
    }
    if (sign == "*" && left.is(Kind::string) && right.is(Kind::integer))
      return repeated(left, right, node.line);
    const TemplateValue& unknown = left.is(Kind::undefined) ? left : right;
    if (unknown.is(Kind::undefined))
      refuse(node.line, "\"", unknown.undefined_name(), "\" is undefined, so \"", sign, "\" cannot use it");
    refuse(node.line, "cannot compute ", left.kind_name(), " ", sign, " ", right.kind_name());
  }

  TemplateValue repeated(const TemplateValue& text, const TemplateValue& count, int line) {
    std::string result;
    for (int64_t i = 0; i < count.as_integer(); ++i) {
      meter_.charge(text.weight(), line);
      result += text.as_string();
    }
    return TemplateValue::string(std::move(result));
  }

  TemplateValue arithmetic(const TemplateValue& left, const TemplateValue& right,
                           const TemplateExpression& node) {
    const std::string& sign = node.text;
    const bool is_real = left.is(Kind::real) || right.is(Kind::real);
    if ((sign == "/" || sign == "//" || sign == "%") && right.as_real() == 0)
      refuse(node.line, "division by zero");
    if (sign == "/") return TemplateValue::real(left.as_real() / right.as_real());
    if (sign == "**") return power(left, right, node.line);
    if (is_real) {
      const double a = left.as_real(), b = right.as_real();
      if (sign == "+") return TemplateValue::real(a + b);
      if (sign == "-") return TemplateValue::real(a - b);
      if (sign == "*") return TemplateValue::real(a * b);
      if (sign == "//") return TemplateValue::real(std::floor(a / b));
      return TemplateValue::real(a - std::floor(a / b) * b);
    }
    const int64_t a = left.as_integer(), b = right.as_integer();
    int64_t result = 0;
    bool overflows = false;
    if (sign == "+") {
      overflows = __builtin_add_overflow(a, b, &result);
    } else if (sign == "-") {
      overflows = __builtin_sub_overflow(a, b, &result);
    } else if (sign == "*") {
      overflows = __builtin_mul_overflow(a, b, &result);
    } else if (a == INT64_MIN && b == -1) {
      overflows = true;
    } else {
      const int64_t quotient = a / b - ((a % b != 0) && ((a % b < 0) != (b < 0)) ? 1 : 0);
      result = sign == "//" ? quotient : a - quotient * b;
    }
    if (overflows) refuse(node.line, "integer overflow in ", a, " ", sign, " ", b);
    return TemplateValue::integer(result);
  }

  TemplateValue power(const TemplateValue& left, const TemplateValue& right, int line) {
    if (left.is(Kind::real) || right.is(Kind::real) || right.as_integer() < 0)
      return TemplateValue::real(std::pow(left.as_real(), right.as_real()));
    int64_t result = 1;
    for (int64_t i = 0; i < right.as_integer() && result != 0; ++i) {
      meter_.charge(1, line);
      if (__builtin_mul_overflow(result, left.as_integer(), &result))
        refuse(line, "integer overflow in a power");
    }
    return TemplateValue::integer(result);
  }
};

}  // namespace

std::string run_template(const StatementList& statements, TemplateDict variables, const std::string& where) {
  return Interpreter(std::move(variables), where).run(statements);
}

}  // namespace ropd::text
