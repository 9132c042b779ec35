#include "base/yaml.h"

#include <yaml.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace ropd {
namespace {

// Taken away here: libyaml skips it but counts it as a column, so that the first line would be indented.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 100000;

using Kind = ConfigNode::Kind;

// One document from libyaml's events. Nothing is expanded, so time and memory grow with the text alone; the
// recursion is as deep as the values are nested, which is bounded. Refers to the text; one use.
class Reader {
 public:
  Reader(std::string_view text, std::string_view where)
      : text_(text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text), where_(where) {
    if (text.size() > kMaxBytes)
      fail(where, ": has ", text.size(), " bytes, a config has at most ", kMaxBytes);
    if (!yaml_parser_initialize(&parser_)) fail(where, ": no memory to read YAML");
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);  // not guessed from the first bytes
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text_.data()),
                                 text_.size());
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  ConfigNode document() {
    next();  // the stream begins
    if (next() == YAML_STREAM_END_EVENT) return {.where = place()};
    const auto& start = event_.data.document_start;
    if (start.version_directive || start.tag_directives.start != start.tag_directives.end)
      refuse("directives (%name) are not supported");
    next();
    ConfigNode root = value(0);
    next();  // the document ends
    if (next() != YAML_STREAM_END_EVENT) refuse("a second YAML document begins, expected one");
    return root;
  }

 private:
  struct Bracket {
    char letter = '[';
    size_t line = 0;
  };

  const std::string_view text_, where_;
  yaml_parser_t parser_ = {};
  yaml_event_t event_ = {};  // the one being read
  std::vector<Bracket> open_brackets_;
  int num_nodes_ = 0;

  yaml_event_type_t next() {
    yaml_event_delete(&event_);
    if (!yaml_parser_parse(&parser_, &event_)) refuse_text();
    return event_.type;
  }

  std::string place() const { return place_of(event_.start_mark.line); }
  std::string place_of(size_t line) const { return std::string(where_) + ":" + std::to_string(line + 1); }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(place(), ": ", parts...);
  }

  // What libyaml could not read, in its words, with the line to look at.
  [[noreturn]] void refuse_text() const {
    const std::string problem = parser_.problem ? parser_.problem : "no memory";
    if (parser_.error == YAML_READER_ERROR) {  // knows bytes, not lines
      const auto before = text_.substr(0, parser_.problem_offset);
      fail(place_of(static_cast<size_t>(std::count(before.begin(), before.end(), '\n'))),
           ": not text: ", problem);
    }
    size_t line = parser_.problem_mark.line;
    std::string_view content = line_text(line);
    const bool is_blank = content.find_first_not_of(" \t") == std::string_view::npos;
    if (is_blank && !open_brackets_.empty())
      fail(place_of(open_brackets_.back().line), ": the bracket '", open_brackets_.back().letter,
           "' is never closed");
    if (content.substr(0, content.find_first_not_of(" \t")).find('\t') != std::string_view::npos)
      fail(place_of(line), ": a tab in the indentation, expected spaces");
    if (is_blank && parser_.context) content = line_text(line = parser_.context_mark.line);
    std::string context = parser_.context ? std::string(" ") + parser_.context : "";
    if (parser_.context && parser_.context_mark.line != line)
      context += " from line " + std::to_string(parser_.context_mark.line + 1) + " on";
    fail(place_of(line), ": ", problem, context, ", found '", shown(content),
         "' (wrong indentation, or quotes missing around a text?)");
  }
  std::string_view line_text(size_t line) const {
    std::string_view rest = text_;
    for (; line > 0 && !rest.empty(); --line)
      rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
    return rest.substr(0, rest.find_first_of("\r\n"));
  }
  // The beginning of a line, whole characters only.
  static std::string shown(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.size() <= 60) return std::string(text);
    size_t length = 60;
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
    return std::string(text.substr(0, length)) + "...";
  }

  void check_properties(const unsigned char* anchor, const unsigned char* tag) const {
    if (anchor) refuse("anchors (&name) are not supported, found '&", anchor, "'");
    if (tag) refuse("tags (!name) are not supported, found '", tag, "'");
  }

  ConfigNode value(int depth) {
    if (depth > kMaxDepth) refuse("nested deeper than ", kMaxDepth, " levels");
    if (++num_nodes_ > kMaxNodes) refuse("more than ", kMaxNodes, " values");
    switch (event_.type) {
      case YAML_SCALAR_EVENT:
        return scalar();
      case YAML_SEQUENCE_START_EVENT:
        return list(depth);
      case YAML_MAPPING_START_EVENT:
        return map(depth);
      default:
        refuse_alias();
    }
  }
  [[noreturn]] void refuse_alias() const {
    refuse("aliases (*name) are not supported, found '*", event_.data.alias.anchor, "'");
  }

  ConfigNode scalar() const {
    const auto& data = event_.data.scalar;
    check_properties(data.anchor, data.tag);
    const bool is_in_lines =
        data.style == YAML_LITERAL_SCALAR_STYLE || data.style == YAML_FOLDED_SCALAR_STYLE;
    if (!is_in_lines && event_.end_mark.line != event_.start_mark.line)
      refuse("the text in '", shown(line_text(event_.start_mark.line)),
             "' goes on in the next line (wrong indentation there? Texts over several lines stand behind | "
             "or >)");
    ConfigNode leaf{.kind = Kind::scalar, .where = place()};
    leaf.scalar.assign(reinterpret_cast<const char*>(data.value), data.length);
    leaf.is_quoted = data.style != YAML_PLAIN_SCALAR_STYLE;
    const std::string& text = leaf.scalar;
    const bool is_null = text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
    if (is_null && !leaf.is_quoted) return {.where = leaf.where};
    return leaf;
  }

  ConfigNode list(int depth) {
    check_properties(event_.data.sequence_start.anchor, event_.data.sequence_start.tag);
    ConfigNode node{.kind = Kind::list, .where = place()};
    const bool is_flow = event_.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    if (is_flow) open_brackets_.push_back({'[', event_.start_mark.line});
    while (next() != YAML_SEQUENCE_END_EVENT) node.items.push_back(value(depth + 1));
    if (is_flow) open_brackets_.pop_back();
    return node;
  }

  ConfigNode map(int depth) {
    check_properties(event_.data.mapping_start.anchor, event_.data.mapping_start.tag);
    ConfigNode node{.kind = Kind::map, .where = place()};
    const bool is_flow = event_.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    if (is_flow) open_brackets_.push_back({'{', event_.start_mark.line});
    std::set<std::string> names;
    while (next() != YAML_MAPPING_END_EVENT) {
      if (event_.type == YAML_ALIAS_EVENT) refuse_alias();
      if (event_.type != YAML_SCALAR_EVENT) refuse("a list or a map as a key is not supported");
      const ConfigNode key = scalar();
      if (key.scalar == "<<") refuse("merge keys (<<) are not supported");
      if (key.kind == Kind::null) refuse("a key is null, expected a name");
      if (!names.insert(key.scalar).second) refuse("the key '", key.scalar, "' occurs twice");
      next();
      node.items.push_back(value(depth + 1));
      node.items.back().name = key.scalar;
      node.items.back().where = key.where;
    }
    if (is_flow) open_brackets_.pop_back();
    return node;
  }
};

// Between " ", with escapes for what YAML gives a meaning to or does not allow in a text.
std::string quoted_text(std::string_view text) {
  constexpr std::pair<std::string_view, const char*> kEscapes[] = {{"\"", "\\\""},
                                                                   {"\\", "\\\\"},
                                                                   {"\n", "\\n"},
                                                                   {"\t", "\\t"},
                                                                   {"\xE2\x80\xA8", "\\L"},
                                                                   {"\xE2\x80\xA9", "\\P"},
                                                                   {"\xEF\xBB\xBF", "\\uFEFF"},
                                                                   {"\xEF\xBF\xBE", "\\uFFFE"},
                                                                   {"\xEF\xBF\xBF", "\\uFFFF"}};
  std::string out = "\"";
  while (!text.empty()) {
    const auto known = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                    [&](const auto& escape) { return text.starts_with(escape.first); });
    const bool is_c1 = text.size() > 1 && text[0] == '\xC2' && static_cast<unsigned char>(text[1]) < 0xA0;
    const auto code = static_cast<unsigned char>(text[is_c1]);  // the C1 controls are C2 80 to C2 9F
    if (known != std::end(kEscapes)) {
      out += known->second;
      text.remove_prefix(known->first.size());
      continue;
    }
    if (is_c1 || code < 32 || code == 127)
      out += "\\x", out += "0123456789abcdef"[code >> 4], out += "0123456789abcdef"[code & 15];
    else
      out += text[0];
    text.remove_prefix(is_c1 ? 2 : 1);
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
  return Reader(text, where).document();
}

std::string write_yaml(const ConfigNode& map, bool with_comments) {
  std::string out;
  write_map(out, map, "", with_comments);
  return out;
}

}  // namespace ropd
