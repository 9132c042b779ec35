#include "base/config_fields.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace ropd {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 100000;  // aliases can make a short text expand without end

using Kind = ConfigNode::Kind;

// Copies yaml-cpp's graph into our tree, with bounds.
class Converter {
 public:
  explicit Converter(std::string_view where) : where_(where) {}

  ConfigNode convert(const YAML::Node& node, int depth) {
    ConfigNode out{.where = place_of(node)};
    if (depth > kMaxDepth) fail(out.where, ": nested deeper than ", kMaxDepth, " levels");
    if (++num_nodes_ > kMaxNodes) fail(where_, ": more than ", kMaxNodes, " values (aliases that multiply?)");
    if (node.IsScalar()) {
      out.kind = Kind::scalar;
      out.scalar = node.Scalar();
      out.is_quoted = node.Tag() == "!";
    } else if (node.IsSequence()) {
      out.kind = Kind::list;
      for (const auto& item : node) out.items.push_back(convert(item, depth + 1));
    } else if (node.IsMap()) {
      out.kind = Kind::map;
      for (const auto& entry : node) add_entry(out, entry.first, entry.second, depth);
    }
    return out;
  }

 private:
  std::string_view where_;
  int num_nodes_ = 0;

  std::string place_of(const YAML::Node& node) const {
    const auto mark = node.Mark();
    return mark.is_null() ? std::string(where_) : std::string(where_) + ":" + std::to_string(mark.line + 1);
  }
  void add_entry(ConfigNode& out, const YAML::Node& key, const YAML::Node& value, int depth) {
    if (!key.IsScalar()) fail(place_of(key), ": a key must be plain text");
    const std::string name = key.Scalar();
    if (config_detail::find_entry(out, name)) fail(place_of(key), ": the key '", name, "' occurs twice");
    ConfigNode child = convert(value, depth + 1);
    child.where = place_of(key);
    child.name = name;
    out.items.push_back(std::move(child));
  }
};

ConfigNode parse_document(std::string_view text, std::string_view where) {
  if (text.size() > kMaxBytes) fail(where, ": has ", text.size(), " bytes, a config has at most ", kMaxBytes);
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(std::string(text));
  } catch (const YAML::Exception& error) {  // the library's border: its exceptions become ours
    fail(where, ":", error.mark.line + 1, ": not valid YAML: ", error.msg);
  }
  if (documents.size() > 1) fail(where, ": holds ", documents.size(), " YAML documents, expected one");
  if (documents.empty()) return {.where = std::string(where)};
  return Converter(where).convert(documents[0], 0);
}

// Descends one step of a dotted key, making maps on the way.
ConfigNode& child_of(ConfigNode& node, const std::string& name, const std::string& where) {
  if (node.kind == Kind::list) {
    size_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error != std::errc() || end != name.data() + name.size() || index >= node.items.size()) {
      fail(where, ": '", name, "' is not the index of one of the ", node.items.size(), " items of this list");
    }
    return node.items[index];
  }
  if (node.kind != Kind::map) node = {.kind = Kind::map, .name = node.name, .where = where};
  for (auto& child : node.items) {
    if (child.name == name) return child;
  }
  node.items.push_back({.name = name, .where = where});
  return node.items.back();
}

void set_where(ConfigNode& node, const std::string& where) {  // bounded by kMaxDepth
  node.where = where;
  for (auto& item : node.items) set_where(item, where);
}

void apply_override(ConfigNode& root, const std::string& text) {
  const std::string where = "override '" + text + "'";
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(where, ": expected key=value, e.g. train.learning_rate=2e-6");
  ConfigNode value = parse_document(std::string_view(text).substr(equals + 1), where);
  ConfigNode* node = &root;
  size_t begin = 0;
  for (int depth = 0; begin <= equals; ++depth) {
    if (depth > kMaxDepth) fail(where, ": a key has at most ", kMaxDepth, " parts");
    const auto end = std::min(text.find('.', begin), equals);
    if (end == begin) fail(where, ": the key has an empty part");
    node = &child_of(*node, text.substr(begin, end - begin), where);
    begin = end + 1;
  }
  set_where(value, where);
  value.name = node->name;
  *node = std::move(value);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above_left = diagonal;
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, above_left + (a[i - 1] != b[j - 1])});
    }
  }
  return row[b.size()];
}

std::optional<double> parse_number(const ConfigNode& node) {
  if (node.kind != Kind::scalar || node.is_quoted) return std::nullopt;
  std::string_view text = node.scalar;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string shown(const ConfigNode& node) {
  switch (node.kind) {
    case Kind::null:
      return "null";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a section";
    case Kind::scalar:
      break;
  }
  const std::string text = node.scalar.size() > 60 ? node.scalar.substr(0, 60) + "..." : node.scalar;
  return node.is_quoted ? "\"" + text + "\"" : "'" + text + "'";
}

std::string number_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

}  // namespace

std::string Range::text() const {
  const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
  if (has_low && has_high)
    return (excludes_low ? "in (" : "in [") + number_text(low) + ", " + number_text(high) + "]";
  if (has_low) return (excludes_low ? "> " : ">= ") + number_text(low);
  return has_high ? "<= " + number_text(high) : "";
}

ConfigNode parse_yaml(std::string_view text, std::string_view where, std::span<const std::string> overrides) {
  ConfigNode root = parse_document(text, where);
  if (root.kind != Kind::map && root.kind != Kind::null)
    fail(where, ": expected 'key: value' lines, found ", shown(root));
  for (const auto& text_of_override : overrides) apply_override(root, text_of_override);
  return root;
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(1, name.size() / 2) + 1;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(name.substr(0, 200), candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best ? *best : "";
}

namespace config_detail {

Place Place::child(std::string_view name) const {
  return {key.empty() ? std::string(name) : key + "." + std::string(name), all_fields};
}

Place Place::item(size_t index) const { return {key + "[" + std::to_string(index) + "]", all_fields, range}; }

void refuse(const ConfigNode& node, const Place& place, std::string_view expected) {
  fail(node.where, ": ", place.key.empty() ? "the config" : place.key, ": got ", shown(node), ", expected ",
       expected);
}

void refuse_key(const ConfigNode& child, const Place& place, const std::vector<std::string>& known) {
  const std::string& name = child.name;
  std::string nearest = nearest_name(name, known);
  if (!nearest.empty()) {
    nearest = place.child(nearest).key;
  } else if (place.all_fields) {  // right name, wrong section?
    for (const auto& info : *place.all_fields) {
      if (info.key.size() > name.size() && info.key.ends_with("." + name)) nearest = info.key;
    }
  }
  std::string known_text;
  for (const auto& key : known) known_text += (known_text.empty() ? "" : ", ") + key;
  fail(child.where, ": unknown key '", place.child(name).key, "'",
       nearest.empty() ? " (known here: " + known_text + ")" : " (did you mean '" + nearest + "'?)");
}

bool is_auto(const ConfigNode& node) { return node.kind == Kind::scalar && node.scalar == "auto"; }

void expect_kind(const ConfigNode& node, const Place& place, Kind kind) {
  if (node.kind != kind)
    refuse(node, place, kind == Kind::list ? "a list [a, b, ...]" : "a section of 'key: value' lines");
}

const ConfigNode* find_entry(const ConfigNode& node, std::string_view name) {
  if (node.kind != Kind::map) return nullptr;
  for (const auto& child : node.items) {
    if (child.name == name) return &child;
  }
  return nullptr;
}

void refuse_unknown(const ConfigNode& node, const Place& place, const std::vector<std::string>& known) {
  for (const auto& child : node.items) {
    if (std::find(known.begin(), known.end(), child.name) == known.end()) refuse_key(child, place, known);
  }
}

namespace {

// An integer field: digits, or a spelling like 1e6 that means an exact integer.
template <class T>
T read_whole(const ConfigNode& node, const Place& place, T low, T high) {
  const auto expected = number_type("integer", place.range);
  if (node.kind != Kind::scalar || node.is_quoted) refuse(node, place, expected);
  std::string_view text = node.scalar;
  if (text.starts_with('+')) text.remove_prefix(1);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    const auto number = parse_number(node);
    // Beyond 2^53 a double no longer says which integer was meant.
    if (!number || *number != std::floor(*number) || std::abs(*number) > 0x1p53 ||
        *number < static_cast<double>(low)) {
      refuse(node, place, expected);
    }
    value = static_cast<T>(*number);
  }
  if (value < low || value > high) {
    refuse(node, place, "an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  }
  if (!place.range.contains(static_cast<double>(value))) refuse(node, place, expected);
  return value;
}

}  // namespace

int64_t read_integer(const ConfigNode& node, const Place& place, int64_t low, int64_t high) {
  return read_whole<int64_t>(node, place, low, high);
}

uint64_t read_unsigned(const ConfigNode& node, const Place& place, uint64_t high) {
  return read_whole<uint64_t>(node, place, 0, high);
}

size_t read_choice(const ConfigNode& node, const Place& place, std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), node.scalar);
  if (node.kind != Kind::scalar || found == names.end()) {
    const std::vector<std::string> candidates(names.begin(), names.end());
    const auto nearest = node.kind == Kind::scalar ? nearest_name(node.scalar, candidates) : "";
    refuse(node, place,
           "one of " + joined(names, ", ") + (nearest.empty() ? "" : " (did you mean '" + nearest + "'?)"));
  }
  return static_cast<size_t>(found - names.begin());
}

void read_value(bool& value, const ConfigNode& node, const Place& place) {
  if (node.kind != Kind::scalar || node.is_quoted || (node.scalar != "true" && node.scalar != "false")) {
    refuse(node, place, "true or false");
  }
  value = node.scalar == "true";
}

void read_value(double& value, const ConfigNode& node, const Place& place) {
  const auto number = parse_number(node);
  if (!number || !place.range.contains(*number)) refuse(node, place, number_type("number", place.range));
  value = *number;
}

void read_value(std::string& value, const ConfigNode& node, const Place& place) {
  if (node.kind != Kind::scalar) refuse(node, place, "text");
  value = node.scalar;
}

ConfigNode scalar_node(std::string text) { return {.kind = Kind::scalar, .scalar = std::move(text)}; }
ConfigNode to_node(bool value) { return scalar_node(value ? "true" : "false"); }
ConfigNode to_node(double value) { return scalar_node(number_text(value)); }
ConfigNode to_node(const std::string& value) {
  ConfigNode node = scalar_node(value);
  // Plain only where no YAML reader can take it for anything but this text.
  const bool is_plain = !value.empty() && std::isalpha(static_cast<unsigned char>(value[0])) &&
                        std::all_of(value.begin(), value.end(), [](unsigned char c) {
                          return (c < 128 && std::isalnum(c)) || c == '_' || c == '/' || c == '.' || c == '-';
                        });
  static constexpr std::string_view kWords[] = {"true", "false", "null", "yes", "no", "on",
                                                "off",  "y",     "n",    "nan", "inf"};
  std::string lower = value;
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  node.is_quoted = !is_plain || std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
  return node;
}

std::string number_type(std::string_view noun, const Range& range) {
  const auto bound = range.text();
  return std::string(noun) + (bound.empty() ? "" : " " + bound);
}

std::string joined(std::span<const std::string_view> names, std::string_view separator) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : std::string(separator)) + std::string(name);
  return text;
}

}  // namespace config_detail

namespace {

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

std::string table_cell(std::string text) {
  for (size_t place = 0; (place = text.find('|', place)) != std::string::npos; place += 2)
    text.replace(place, 1, "\\|");
  return text;
}

}  // namespace

std::string write_yaml(const ConfigNode& map, bool with_comments) {
  std::string out;
  write_map(out, map, "", with_comments);
  return out;
}

std::string fields_markdown(std::string_view title, std::span<const FieldInfo> fields) {
  std::string out = "# " + std::string(title) + "\n\n";
  out +=
      "Generated from the field lists in the code; do not edit. An unknown key, a wrong type or a value out "
      "of range is an error.\n\n";
  out += "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const auto& info : fields) {
    const std::string default_text = info.is_section ? "" : "`" + table_cell(info.default_value) + "`";
    out += "| `" + info.key + "` | " + table_cell(info.type) + " | " + default_text + " | " +
           table_cell(info.help) + " |\n";
  }
  return out;
}

std::string fields_text(std::span<const FieldInfo> fields) {
  std::string out;
  for (const auto& info : fields) {
    std::string line = "  " + info.key;
    if (!info.is_section) line += "=" + info.default_value;
    line.resize(std::max<size_t>(line.size() + 2, 44), ' ');
    out += line + info.help + (info.is_section ? "" : " (" + info.type + ")") + "\n";
  }
  return out;
}

}  // namespace ropd
