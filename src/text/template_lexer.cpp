#include "text/template_lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "text/unicode.h"

namespace ropd::text {

namespace {

using Kind = TemplateWord::Kind;

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_begin(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// \r\n and \r become \n; one newline at the end is dropped.
std::string with_plain_newlines(std::string_view jinja) {
  std::string result;
  result.reserve(jinja.size());
  for (size_t i = 0; i < jinja.size(); ++i) {
    if (jinja[i] == '\r') {
      result.push_back('\n');
      if (i + 1 < jinja.size() && jinja[i + 1] == '\n') ++i;
    } else {
      result.push_back(jinja[i]);
    }
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

class Lexer {
 public:
  Lexer(std::string jinja, const std::string& where) : jinja_(std::move(jinja)), where_(where) {}

  std::vector<TemplateWord> lex() {
    while (at_ < jinja_.size()) {
      const size_t tag = find_tag();
      lex_text(tag);
      if (at_ < jinja_.size()) lex_tag();
    }
    push(Kind::end, "");
    return std::move(words_);
  }

 private:
  std::string jinja_;
  const std::string& where_;
  std::vector<TemplateWord> words_;
  size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;     // the text before the next tag begins a line
  bool strips_text_ = false;    // the tag before ended with '-'
  bool trims_newline_ = false;  // the tag before was a block or comment without '+'

  std::string_view rest() const { return std::string_view(jinja_).substr(at_); }
  void push(Kind kind, std::string text) { words_.push_back({kind, std::move(text), line_}); }

  size_t find_tag() const {
    size_t at = at_;
    while ((at = jinja_.find('{', at)) != std::string::npos) {
      if (at + 1 < jinja_.size() && (jinja_[at + 1] == '{' || jinja_[at + 1] == '%' || jinja_[at + 1] == '#'))
        return at;
      ++at;
    }
    return jinja_.size();
  }

  void count_lines(std::string_view text) {
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }

  void lex_text(size_t end) {
    std::string_view text = std::string_view(jinja_).substr(at_, end - at_);
    const size_t num_bytes = text.size();
    const std::string_view whole = text;
    bool starts_line = starts_line_;
    if (strips_text_) {
      while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    } else if (trims_newline_ && text.starts_with('\n')) {
      text.remove_prefix(1);
      starts_line = true;
    }
    if (end < jinja_.size()) {
      const char sign = end + 2 < jinja_.size() ? jinja_[end + 2] : ' ';
      if (sign == '-') {
        while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
      } else if (sign != '+' && jinja_[end + 1] != '{') {
        strip_line_begin(text, starts_line);
      }
    }
    if (!text.empty()) push(Kind::text, std::string(text));
    count_lines(whole);
    at_ += num_bytes;
  }

  // lstrip_blocks: white space between the line's begin and a block tag goes.
  static void strip_line_begin(std::string_view& text, bool starts_line) {
    const size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !starts_line) return;
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_space))
      text = text.substr(0, begin);
  }

  void lex_tag() {
    const char kind = jinja_[at_ + 1];
    const int begin_line = line_;
    at_ += 2;
    if (at_ < jinja_.size() && (jinja_[at_] == '-' || jinja_[at_] == '+')) ++at_;
    if (kind == '#') return skip_comment(begin_line);
    push(kind == '%' ? Kind::block_begin : Kind::print_begin, "");
    const std::string_view closing = kind == '%' ? "%}" : "}}";
    int depth = 0;
    while (true) {
      while (at_ < jinja_.size() && is_space(jinja_[at_])) {
        line_ += jinja_[at_] == '\n';
        ++at_;
      }
      if (at_ >= jinja_.size())
        fail(where_, ":", begin_line, ": a tag is not closed (expected ", closing, ")");
      // Inside brackets }} may close two dicts.
      if (depth == 0 && try_close(kind, closing)) return;
      lex_word(depth);
    }
  }

  bool try_close(char kind, std::string_view closing) {
    const char sign = jinja_[at_];
    const bool has_sign = (sign == '-' || sign == '+') && rest().substr(1).starts_with(closing);
    if (!has_sign && !rest().starts_with(closing)) return false;
    at_ += closing.size() + (has_sign ? 1 : 0);
    push(kind == '%' ? Kind::block_end : Kind::print_end, "");
    end_tag(has_sign ? sign : ' ', kind != '{');
    return true;
  }

  void end_tag(char sign, bool trims) {
    strips_text_ = sign == '-';
    trims_newline_ = trims && sign != '+';
    starts_line_ = false;
  }

  void skip_comment(int begin_line) {
    const size_t end = jinja_.find("#}", at_);
    if (end == std::string::npos) fail(where_, ":", begin_line, ": a comment is not closed (expected #})");
    count_lines(std::string_view(jinja_).substr(at_, end - at_));
    const char last = end > at_ ? jinja_[end - 1] : ' ';
    at_ = end + 2;
    end_tag(last == '-' || last == '+' ? last : ' ', true);
  }

  void lex_word(int& depth) {
    const char c = jinja_[at_];
    if (c == '\'' || c == '"') return lex_string();
    if (is_digit(c)) return lex_number();
    if (is_name_begin(c)) {
      size_t end = at_;
      while (end < jinja_.size() && (is_name_begin(jinja_[end]) || is_digit(jinja_[end]))) ++end;
      push(Kind::name, jinja_.substr(at_, end - at_));
      at_ = end;
      return;
    }
    constexpr std::array<std::string_view, 7> kLong = {"//", "**", "==", "!=", ">=", "<=", ""};
    for (const std::string_view symbol : kLong)
      if (!symbol.empty() && rest().starts_with(symbol)) {
        push(Kind::symbol, std::string(symbol));
        at_ += symbol.size();
        return;
      }
    if (std::string_view("+-*/%~<>=()[]{},.:|").find(c) == std::string_view::npos)
      fail(where_, ":", line_, ": unexpected character '", repair_utf8(rest().substr(0, 4)), "' in a tag");
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') depth = std::max(depth - 1, 0);
    push(Kind::symbol, std::string(1, c));
    ++at_;
  }

  void lex_number() {
    size_t end = at_;
    bool is_real = false;
    std::string digits;
    while (end < jinja_.size() && (is_digit(jinja_[end]) || jinja_[end] == '_')) ++end;
    if (end + 1 < jinja_.size() && jinja_[end] == '.' && is_digit(jinja_[end + 1])) {
      is_real = true;
      ++end;
      while (end < jinja_.size() && is_digit(jinja_[end])) ++end;
    }
    if (end < jinja_.size() && (jinja_[end] == 'e' || jinja_[end] == 'E')) {
      size_t after = end + 1;
      if (after < jinja_.size() && (jinja_[after] == '+' || jinja_[after] == '-')) ++after;
      if (after < jinja_.size() && is_digit(jinja_[after])) {
        is_real = true;
        end = after;
        while (end < jinja_.size() && is_digit(jinja_[end])) ++end;
      }
    }
    for (size_t i = at_; i < end; ++i)
      if (jinja_[i] != '_') digits.push_back(jinja_[i]);
    push(is_real ? Kind::real : Kind::integer, digits);
    at_ = end;
  }

  void lex_string() {
    const char quote = jinja_[at_++];
    const int begin_line = line_;
    std::string text;
    while (true) {
      if (at_ >= jinja_.size())
        fail(where_, ":", begin_line, ": a string is not closed (expected ", quote, ")");
      const char c = jinja_[at_++];
      if (c == quote) break;
      line_ += c == '\n';
      if (c == '\\' && at_ < jinja_.size())
        lex_escape(text);
      else
        text.push_back(c);
    }
    words_.push_back({Kind::string, std::move(text), begin_line});
  }

  // Python's escapes; an unknown one keeps its backslash.
  void lex_escape(std::string& text) {
    const char c = jinja_[at_++];
    constexpr std::string_view kFrom = "ntrbfav0\\'\"", kTo("\n\t\r\b\f\a\v\0\\'\"", 11);
    if (c == 'x') return lex_code_point(text, 2);
    if (c == 'u') return lex_code_point(text, 4);
    if (c == 'U') return lex_code_point(text, 8);
    if (c == '\n') {
      ++line_;
      return;
    }
    if (c == 'N' || (is_digit(c) && c < '8' && (c != '0' || (at_ < jinja_.size() && is_digit(jinja_[at_])))))
      fail(where_, ":", line_, ": the string escape \\", c, " is not supported");
    if (const size_t index = kFrom.find(c); index != std::string_view::npos) {
      text.push_back(kTo[index]);
    } else {
      text.push_back('\\');
      text.push_back(c);
    }
  }

  void lex_code_point(std::string& text, size_t num_digits) {
    char32_t point = 0;
    for (size_t i = 0; i < num_digits; ++i, ++at_) {
      const char c = at_ < jinja_.size() ? jinja_[at_] : ' ';
      const char lower = static_cast<char>(c | 0x20);
      if (!is_digit(c) && (lower < 'a' || lower > 'f'))
        fail(where_, ":", line_, ": a \\x or \\u escape needs ", num_digits, " hexadecimal digits");
      point = point * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
      fail(where_, ":", line_, ": a string escape names no character (lone surrogate or too large)");
    append_utf8(text, point);
  }
};

}  // namespace

std::vector<TemplateWord> lex_template(std::string_view jinja, const std::string& where) {
  if (jinja.starts_with("\xEF\xBB\xBF")) jinja.remove_prefix(3);
  if (jinja.size() > kMaxTemplateBytes)
    fail(where, ": the template has ", jinja.size(), " bytes (expected at most ", kMaxTemplateBytes, ")");
  if (!is_valid_utf8(jinja)) fail(where, ": the template is not valid UTF-8");
  return Lexer(with_plain_newlines(jinja), where).lex();
}

}  // namespace ropd::text
