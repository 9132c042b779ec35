#include "grading/plain_parser.h"

#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

constexpr size_t kMaxLength = 4000;

class PlainParser {
 public:
  PlainParser(std::string_view text, PlainSyntax syntax) : text_(text), syntax_(syntax) {}

  ExpressionRef run() {
    auto result = sum(0);
    skip_spaces();
    return result && position_ == text_.size() ? result : nullptr;
  }

 private:
  std::string_view text_;
  PlainSyntax syntax_;
  size_t position_ = 0;

  void skip_spaces() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t')) ++position_;
  }
  char peek() {
    skip_spaces();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  bool at_power() { return peek() == '^' || text_.substr(position_).starts_with("**"); }

  ExpressionRef sum(int depth) {
    auto left = product(depth);
    while (left && (peek() == '+' || peek() == '-')) {
      const bool plus = text_[position_++] == '+';
      const auto right = product(depth);
      if (!right) return nullptr;
      left = plus ? make_sum(left, right) : make_difference(left, right);
    }
    return left;
  }

  bool starts_factor() {
    const char c = peek();
    if (c == '(' || is_digit(c) || c == '.') return true;
    return c != '\0' && is_alphabetic(code_point(text_, position_));
  }

  ExpressionRef product(int depth) {
    auto left = signed_power(depth);
    while (left) {
      ExpressionRef right;
      if (peek() == '*' && !at_power()) {
        ++position_;
        right = signed_power(depth);
        if (right) left = make_product(left, right);
      } else if (peek() == '/') {
        ++position_;
        right = signed_power(depth);
        if (right) right = left = make_quotient(left, right);
      } else if (syntax_ == PlainSyntax::symbolic && starts_factor()) {
        right = power(depth);
        if (right) left = make_product(left, right);
      } else {
        return left;
      }
      if (!right) return nullptr;
    }
    return nullptr;
  }

  ExpressionRef signed_power(int depth) {
    if (depth > kMaxDepth) return nullptr;
    if (peek() == '-') {
      ++position_;
      const auto child = signed_power(depth + 1);
      return child ? make_negative(child) : nullptr;
    }
    if (peek() == '+') {
      ++position_;
      return signed_power(depth + 1);
    }
    return power(depth);
  }

  ExpressionRef power(int depth) {
    auto base = atom(depth);
    while (base && peek() == '!') {
      ++position_;
      base = make_node(Kind::function, {base}, "factorial");
    }
    if (!base || !at_power()) return base;
    position_ += text_[position_] == '^' ? 1 : 2;
    const auto exponent = signed_power(depth + 1);  // binds to the right: 2^3^2 = 2^9
    return exponent ? make_node(Kind::power, {base, exponent}) : nullptr;
  }

  ExpressionRef atom(int depth) {
    if (depth > kMaxDepth) return nullptr;
    const char c = peek();
    if (c == '(') {
      ++position_;
      auto inside = sum(depth + 1);
      return inside && take(")") ? inside : nullptr;
    }
    if (is_digit(c) || c == '.') return number();
    return syntax_ == PlainSyntax::symbolic && c != '\0' ? name(depth) : nullptr;
  }

  ExpressionRef number() {
    const size_t begin = position_;
    while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
    bool is_decimal = false;
    if (position_ < text_.size() && text_[position_] == '.') {
      is_decimal = true;
      ++position_;
      while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
    }
    const std::string_view digits = text_.substr(begin, position_ - begin);
    if (!is_decimal && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string_view::npos)
      return nullptr;
    auto value = Rational::from_decimal(digits);
    if (!value) return nullptr;
    // 1e3: an exponent needs digits behind it, else e is a symbol.
    size_t end = position_;
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      ++end;
      const bool negative = end < text_.size() && text_[end] == '-';
      if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
      const size_t digits_begin = end;
      while (end < text_.size() && is_digit(text_[end])) ++end;
      if (end > digits_begin) {
        if (end - digits_begin > 4) return nullptr;
        const int exponent = std::stoi(std::string(text_.substr(digits_begin, end - digits_begin)));
        const auto scale = Rational::power(Rational(10), negative ? -exponent : exponent, 20000);
        if (!scale) return nullptr;
        position_ = end;
        return make_number(*value * *scale, true);
      }
    }
    return make_number(*std::move(value), is_decimal);
  }

  // A run of letters: a known name, or a product of one-letter symbols.
  ExpressionRef name(int depth) {
    for (const std::string_view known : {"sqrt", "ln"}) {
      if (!text_.substr(position_).starts_with(known)) continue;
      const size_t begin = position_;
      position_ += known.size();
      if (peek() != '(') {
        position_ = begin;
        break;
      }
      auto argument = atom(depth + 1);
      if (!argument) return nullptr;
      if (known == "sqrt") return make_node(Kind::power, {argument, make_number(Rational(1, 2))});
      return make_node(Kind::function, {argument}, "log");
    }
    if (text_.substr(position_).starts_with("pi")) {
      position_ += 2;
      return make_node(Kind::pi, {});
    }
    if (!is_alphabetic(code_point(text_, position_))) return nullptr;
    const size_t bytes = character_bytes(text_, position_);
    std::string symbol(text_.substr(position_, bytes));
    position_ += bytes;
    if (peek() != '(') return make_symbol(std::move(symbol));
    auto argument = atom(depth + 1);
    return argument ? make_node(Kind::call, {argument}, std::move(symbol)) : nullptr;
  }
};

}  // namespace

ExpressionRef parse_plain(std::string_view text, PlainSyntax syntax) {
  if (text.size() > kMaxLength) return nullptr;
  return PlainParser(text, syntax).run();
}

}  // namespace ropd::grading
