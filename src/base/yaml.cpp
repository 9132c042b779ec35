#include "base/yaml.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "base/error.h"

namespace ropd {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 100000;

using Kind = ConfigNode::Kind;

bool is_blank(char letter) { return letter == ' ' || letter == '\t'; }
bool is_space(char letter) { return is_blank(letter) || letter == '\n' || letter == '\0'; }
bool is_flow_indicator(char letter) {
  return std::string_view(",[]{}").find(letter) != std::string_view::npos;
}

// Bytes of the UTF-8 character at the beginning of `text`, or 0 when there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool is_bad =
      (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||  // overlong, surrogate
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F);    // overlong, too large
  return is_bad ? 0 : length;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[more] | (code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
}

// Lines end with \n alone, without a byte order mark; what no text file holds is refused.
std::string clean_text(std::string_view text, std::string_view where) {
  if (text.size() > kMaxBytes) fail(where, ": has ", text.size(), " bytes, a config has at most ", kMaxBytes);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string out;
  out.reserve(text.size());
  size_t line = 1;
  while (!text.empty()) {
    if (text.starts_with("\r\n")) text.remove_prefix(1);
    const size_t length = utf8_length(text);
    if (length == 0) fail(where, ":", line, ": not UTF-8 text");
    const auto code = static_cast<unsigned char>(text[0]);
    if ((code < 32 && code != '\n' && code != '\t') || code == 127)
      fail(where, ":", line, ": a control character (code ", int{code}, "), expected text");
    line += code == '\n';
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

// One pass from left to right by recursive descent; depth is bounded, and only the first key of a map is
// looked at twice. Owns its copy of the text.
class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : where_(where), text_(clean_text(text, where)) {}

  ConfigNode document() {
    ConfigNode root = block_value(-1, 0, Holder::document);
    skip_to_content();
    if (!at_end()) refuse_indentation();
    return root;
  }

 private:
  enum class Holder { document, map, list };  // of a block value

  std::string_view where_;
  std::string text_;
  // the cursor
  size_t at_ = 0, line_begin_ = 0, line_ = 1;
  bool has_begun_ = false;  // some content was seen, so that --- would begin a second document
  int num_nodes_ = 0;

  // --- cursor ---

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool at_end() const { return at_ == text_.size(); }
  long column() const { return static_cast<long>(at_ - line_begin_); }
  bool at_item() const { return peek() == '-' && is_space(peek(1)); }
  bool at_marker(std::string_view marker) const {
    return column() == 0 && std::string_view(text_).substr(at_).starts_with(marker) && is_space(peek(3));
  }
  std::string place() const { return std::string(where_) + ":" + std::to_string(line_); }

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(place(), ": ", parts...);
  }
  // "'the rest of the line'", or "the end of the text".
  std::string found() const {
    if (at_end()) return "the end of the text";
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    if (end == at_) return "the end of the line";
    size_t length = 0;  // whole characters only
    while (at_ + length < end && length < 40)
      length += std::max<size_t>(1, utf8_length(std::string_view(text_).substr(at_ + length)));
    return "'" + text_.substr(at_, length) + (at_ + length < end ? "...'" : "'");
  }
  [[noreturn]] void refuse_indentation() const {
    refuse("the indentation of ", found(),
           " fits no line above (a text over several lines stands behind | or >)");
  }

  void skip_blanks() {
    while (is_blank(peek())) ++at_;
  }
  void next_line() {
    ++at_, ++line_;
    line_begin_ = at_;
  }
  void skip_comment() {
    if (peek() == '#' && (at_ == line_begin_ || is_space(text_[at_ - 1])))
      at_ = std::min(text_.find('\n', at_), text_.size());
  }

  // To the next letter that is neither space nor comment, over as many lines as it takes.
  void skip_to_content() {
    bool begins_line = at_ == line_begin_;
    for (;;) {
      skip_blanks();
      skip_comment();
      if (peek() == '\n') {
        next_line();
        begins_line = true;
      } else if (begins_line && (at_marker("---") || at_marker("..."))) {
        if (has_begun_ || peek() == '.') refuse("a second YAML document begins, expected one");
        has_begun_ = true;
        at_ += 3;
        end_line("---");
      } else {
        break;
      }
    }
    if (at_end()) return;
    has_begun_ = true;
    const auto indentation = std::string_view(text_).substr(line_begin_, at_ - line_begin_);
    if (begins_line && indentation.find('\t') != std::string_view::npos)
      refuse("a tab in the indentation, expected spaces");
  }

  // Nothing but a comment may follow on this line.
  void end_line(std::string_view behind) {
    skip_blanks();
    skip_comment();
    if (peek() != '\n' && !at_end())
      refuse("unexpected ", found(), " behind ", behind,
             " (a text with ': ', ' #' or quotes in it needs quotes around it)");
  }

  ConfigNode node(Kind kind, int depth) {
    if (depth > kMaxDepth) refuse("nested deeper than ", kMaxDepth, " levels");
    if (++num_nodes_ > kMaxNodes) refuse("more than ", kMaxNodes, " values");
    return {.kind = kind, .where = place()};
  }

  // --- structure by indentation ---

  // What stands behind "key:" or "-", or the document; `indent` is the column of that key or item. A list
  // below a key may stand in the key's own column.
  ConfigNode block_value(long indent, int depth, Holder holder) {
    const std::string where = place();
    const size_t line = line_;
    skip_to_content();
    const bool is_below = line_ != line || holder == Holder::document;
    const bool is_list_in_place = holder == Holder::map && column() == indent && at_item();
    if (at_end() || (is_below && column() <= indent && !is_list_in_place)) {
      ConfigNode absent = node(Kind::null, depth);
      absent.where = where;
      return absent;
    }
    if (is_below || holder == Holder::list) {
      if (at_item()) return block_list(depth);
      const size_t begin = at_;
      const bool is_map = read_key().has_value();
      at_ = begin;
      if (is_map) return block_map(depth);
    }
    return block_leaf(indent, depth);
  }

  ConfigNode block_list(int depth) {
    ConfigNode list = node(Kind::list, depth);
    const long indent = column();
    while (!at_end() && column() == indent && at_item()) {
      ++at_;
      list.items.push_back(block_value(indent, depth + 1, Holder::list));
      skip_to_content();
    }
    if (!at_end() && column() > indent) refuse_indentation();
    return list;
  }

  ConfigNode block_map(int depth) {
    ConfigNode map = node(Kind::map, depth);
    std::set<std::string> names;
    const long indent = column();
    while (!at_end() && column() == indent) {
      const std::string where = place();
      const auto key = at_item() ? std::nullopt : read_key();
      if (!key) refuse("expected 'key: value' like the lines above, found ", found());
      add_entry(map, names, *key, where, [&] { return block_value(indent, depth + 1, Holder::map); });
      skip_to_content();
    }
    if (!at_end() && column() > indent) refuse_indentation();
    return map;
  }

  void add_entry(ConfigNode& map, std::set<std::string>& names, const std::string& key,
                 const std::string& where, const auto& read) {
    if (key == "<<") fail(where, ": merge keys (<<) are not supported");
    if (!names.insert(key).second) fail(where, ": the key '", key, "' occurs twice");
    ConfigNode value = read();
    value.name = key;
    value.where = where;
    map.items.push_back(std::move(value));
  }

  // The key on this line, the cursor then behind its colon; nothing, and the cursor unmoved, when
  // there is none.
  std::optional<std::string> read_key() {
    if (peek() == '[' || peek() == '{' || peek() == '|' || peek() == '>') return std::nullopt;
    const size_t begin = at_;
    std::string key = at_quote() ? quoted() : plain(/*in_flow=*/false);
    skip_blanks();
    if (peek() != ':' || !is_space(peek(1))) {
      at_ = begin;
      return std::nullopt;
    }
    ++at_;
    return key;
  }

  ConfigNode block_leaf(long indent, int depth) {
    if (peek() == '|' || peek() == '>') return block_text(indent, depth);
    ConfigNode leaf = flow_value(depth, /*in_flow=*/false);
    end_line("the value");
    return leaf;
  }

  // --- texts ---

  bool at_quote() const { return peek() == '"' || peek() == '\''; }

  std::string plain(bool in_flow) {
    refuse_indicator(in_flow);
    const size_t begin = at_;
    for (; !at_end() && peek() != '\n'; ++at_) {
      if (peek() == ':' && (is_space(peek(1)) || (in_flow && is_flow_indicator(peek(1))))) break;
      if (peek() == '#' && is_blank(text_[at_ - 1])) break;
      if (in_flow && is_flow_indicator(peek())) break;
    }
    size_t end = at_;
    while (is_blank(text_[end - 1])) --end;  // the first letter is none
    return text_.substr(begin, end - begin);
  }

  // What cannot begin a plain text.
  void refuse_indicator(bool in_flow) const {
    switch (peek()) {
      case '&':
        refuse("anchors (&name) are not supported, found ", found());
      case '*':
        refuse("aliases (*name) are not supported, found ", found());
      case '!':
        refuse("tags (!name) are not supported, found ", found());
      case '%':
        refuse("directives (%name) are not supported, found ", found());
      case ',':
      case '[':
      case ']':
      case '{':
      case '}':
      case '#':
      case '|':
      case '>':
      case '@':
      case '`':
        refuse("no value can begin with ", found(), " (quotes missing?)");
      default:
        break;
    }
    const bool stands_alone = is_space(peek(1)) || (in_flow && is_flow_indicator(peek(1)));
    if (peek() == '?' && stands_alone) refuse("complex keys (? key) are not supported");
    if ((peek() == '-' || peek() == ':') && stands_alone)
      refuse("no value can begin with ", found(), " (quotes missing?)");
  }

  std::string quoted() {
    const char quote = peek();
    std::string out;
    for (++at_; peek() != quote || (quote == '\'' && peek(1) == quote); ++at_) {
      if (at_end() || peek() == '\n')
        refuse("a quoted text does not end on its line (use | for several lines)");
      if (peek() == quote) ++at_;  // '' is one '
      if (peek() == '\\' && quote == '"') {
        append_escape(out);
      } else {
        out += peek();
      }
    }
    ++at_;
    return out;
  }

  // At a backslash; ends at the escape's last letter.
  void append_escape(std::string& out) {
    static constexpr std::string_view kLetters = "0abtnvfre\"/\\ _NLP\t";
    static constexpr uint32_t kCodes[] = {0,   7,   8,    9,   10,   11,   12,     13,     27,
                                          '"', '/', '\\', ' ', 0xA0, 0x85, 0x2028, 0x2029, 9};
    const char letter = peek(1);
    const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    const size_t known = letter == '\0' ? std::string_view::npos : kLetters.find(letter);
    if (digits == 0 && known == std::string_view::npos)
      refuse("unknown escape ", found(), " (a backslash is written \\\\ between \" \")");
    uint64_t code = digits == 0 ? kCodes[known] : 0;
    for (size_t i = 0; i < digits; ++i) {
      const char digit = peek(2 + i);
      const size_t value = digit == '\0' ? 32 : std::string_view("0123456789abcdefABCDEF").find(digit);
      if (value > 21) refuse("expected ", digits, " hexadecimal digits in ", found());
      code = code * 16 + (value < 16 ? value : value - 6);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      refuse("no character has the code in ", found());
    append_utf8(out, static_cast<uint32_t>(code));
    at_ += 1 + digits;
  }

  // The lines behind | or >.
  ConfigNode block_text(long indent, int depth) {
    ConfigNode text = node(Kind::scalar, depth);
    text.is_quoted = true;
    const bool is_folded = peek() == '>';
    char chomping = ' ';
    long width = -1;  // columns that are not part of the text; -1: the first line with content tells
    for (++at_; peek() == '+' || peek() == '-' || (peek() >= '1' && peek() <= '9'); ++at_) {
      if (peek() == '+' || peek() == '-') {
        chomping = peek();
      } else {
        width = std::max(indent, 0L) + (peek() - '0');
      }
    }
    end_line("| or >");
    std::vector<std::string_view> lines;
    bool ends_with_newline = false;
    while (!at_end()) {
      const auto line = line_at(at_ + 1);
      const auto content = std::min(line.find_first_not_of(' '), line.size());
      const bool is_empty = content == line.size() && (width < 0 || static_cast<long>(content) <= width);
      if (width < 0 && !is_empty && static_cast<long>(content) > indent) width = static_cast<long>(content);
      if (!is_empty && (width < 0 || static_cast<long>(content) < width)) break;
      if (at_ + 1 == text_.size()) break;  // the text ended with the line before
      next_line();
      at_ += line.size();
      ends_with_newline = !at_end();
      lines.push_back(is_empty ? std::string_view() : line.substr(static_cast<size_t>(width)));
    }
    text.scalar = joined_lines(lines, is_folded, chomping, ends_with_newline);
    return text;
  }
  std::string_view line_at(size_t begin) const {
    return std::string_view(text_).substr(begin, text_.find('\n', begin) - begin);
  }

  // Folding joins lines with a space, except around lines that begin with a space, and empty lines become
  // breaks.
  static std::string joined_lines(std::vector<std::string_view> lines, bool is_folded, char chomping,
                                  bool ends_with_newline) {
    size_t num_trailing = 0;
    while (!lines.empty() && lines.back().empty()) lines.pop_back(), ++num_trailing;
    std::string out;
    std::string_view before;  // the last line with content
    size_t num_breaks = 0;
    for (const auto line : lines) {
      if (line.empty()) {
        ++num_breaks;
        continue;
      }
      const bool joins = is_folded && !before.empty() && !is_blank(before[0]) && !is_blank(line[0]);
      if (joins && num_breaks == 0) out += ' ';
      out.append(num_breaks + (joins || before.empty() ? 0 : 1), '\n');
      out += line;
      before = line;
      num_breaks = 0;
    }
    const bool has_break = !lines.empty() && (num_trailing > 0 || ends_with_newline);
    if (chomping != '-' && has_break) out += '\n';
    if (chomping == '+') out.append(num_trailing - (num_trailing > 0 && !ends_with_newline ? 1 : 0), '\n');
    return out;
  }

  // --- lists and maps in brackets ---

  ConfigNode flow_value(int depth, bool in_flow) {
    if (peek() == '[') return flow_list(depth);
    if (peek() == '{') return flow_map(depth);
    ConfigNode leaf = node(Kind::scalar, depth);
    leaf.is_quoted = at_quote();
    leaf.scalar = leaf.is_quoted ? quoted() : plain(in_flow);
    const bool is_null =
        leaf.scalar == "~" || leaf.scalar == "null" || leaf.scalar == "Null" || leaf.scalar == "NULL";
    if (is_null && !leaf.is_quoted) return {.where = leaf.where};
    return leaf;
  }

  ConfigNode flow_list(int depth) {
    ConfigNode list = node(Kind::list, depth);
    ++at_;
    while (!closes(list, '[', ']')) {
      list.items.push_back(flow_value(depth + 1, /*in_flow=*/true));
      separate(list, '[', ']');
    }
    return list;
  }

  ConfigNode flow_map(int depth) {
    ConfigNode map = node(Kind::map, depth);
    std::set<std::string> names;
    ++at_;
    while (!closes(map, '{', '}')) {
      const std::string where = place();
      const std::string key = at_quote() ? quoted() : plain(/*in_flow=*/true);
      skip_inside(map, '{');
      if (peek() != ':') refuse("expected ': ' and a value behind the key '", key, "', found ", found());
      ++at_;
      skip_inside(map, '{');
      add_entry(map, names, key, where, [&] {
        const bool is_absent = peek() == ',' || peek() == '}';
        return is_absent ? node(Kind::null, depth + 1) : flow_value(depth + 1, /*in_flow=*/true);
      });
      separate(map, '{', '}');
    }
    return map;
  }

  void skip_inside(const ConfigNode& flow, char open) {
    skip_to_content();
    if (at_end()) fail(flow.where, ": the bracket '", open, "' is never closed");
  }
  bool closes(const ConfigNode& flow, char open, char close) {
    skip_inside(flow, open);
    if (peek() != close) return false;
    ++at_;
    return true;
  }
  void separate(const ConfigNode& flow, char open, char close) {
    skip_inside(flow, open);
    if (peek() == ',') {
      ++at_;
    } else if (peek() != close) {
      refuse("expected ',' or '", close, "', found ", found());
    }
  }
};

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\', out += letter;
    } else if (letter == '\n') {
      out += "\\n";
    } else if (letter == '\t') {
      out += "\\t";
    } else if (code < 32 || code == 127) {
      out += "\\x", out += "0123456789abcdef"[code >> 4], out += "0123456789abcdef"[code & 15];
    } else {
      out += letter;
    }
  }
  return out + "\"";
}

}  // namespace

std::string write_value(const ConfigNode& node) {
  std::string inside;
  switch (node.kind) {
    case Kind::null:
      return "null";
    case Kind::scalar:
      return node.is_quoted ? quoted_text(node.scalar) : node.scalar;
    case Kind::list:
      for (const auto& item : node.items) inside += (inside.empty() ? "" : ", ") + write_value(item);
      return "[" + inside + "]";
    case Kind::map:
      for (const auto& child : node.items) {
        inside += (inside.empty() ? "" : ", ") + child.name + ": " + write_value(child);
      }
      return "{" + inside + "}";
  }
  return "";
}

namespace {

bool holds_maps(const ConfigNode& node) {
  return node.kind == Kind::list && !node.items.empty() && node.items[0].kind == Kind::map;
}

void write_map(std::string& out, const ConfigNode& node, const std::string& indent, bool with_comments) {
  for (const auto& child : node.items) {
    std::string line = indent + child.name + ":";
    const bool is_block = (child.kind == Kind::map && !child.items.empty()) || holds_maps(child);
    if (!is_block) line += " " + write_value(child);
    if (with_comments && !child.comment.empty()) {
      line.resize(std::max<size_t>(line.size() + 2, 36), ' ');
      line += "# " + child.comment;
    }
    out += line + "\n";
    if (holds_maps(child)) {
      for (const auto& item : child.items) out += indent + "  - " + write_value(item) + "\n";
    } else if (is_block) {
      write_map(out, child, indent + "  ", with_comments);
    }
  }
}

}  // namespace

ConfigNode parse_yaml_document(std::string_view text, std::string_view where) {
  return Parser(text, where).document();
}

std::string write_yaml(const ConfigNode& map, bool with_comments) {
  std::string out;
  write_map(out, map, "", with_comments);
  return out;
}

}  // namespace ropd
