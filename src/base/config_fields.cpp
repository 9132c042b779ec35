#include "base/config_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace ropd {
namespace {

constexpr int kMaxKeyParts = 32;

using Kind = ConfigNode::Kind;

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

void set_where(ConfigNode& node, const std::string& where) {  // a parsed value has bounded depth
  node.where = where;
  for (auto& item : node.items) set_where(item, where);
}

void apply_override(ConfigNode& root, const std::string& text) {
  const std::string where = "override '" + text + "'";
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(where, ": expected key=value, e.g. train.learning_rate=2e-6");
  ConfigNode value = parse_yaml_document(std::string_view(text).substr(equals + 1), where);
  ConfigNode* node = &root;
  size_t begin = 0;
  for (int depth = 0; begin <= equals; ++depth) {
    if (depth > kMaxKeyParts) fail(where, ": a key has at most ", kMaxKeyParts, " parts");
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
  ConfigNode root = parse_yaml_document(text, where);
  if (root.kind != Kind::map && root.kind != Kind::null)
    fail(where, ": expected 'key: value' lines, found ", shown(root));
  root.where = where;  // no single line
  for (const auto& text_of_override : overrides) apply_override(root, text_of_override);
  return root;
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(1, name.size() * 2 / 5) + 1;  // more is another word
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(name.substr(0, 200), candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best ? *best : "";
}

namespace {

// The deepest node on the way to a key like stages[0].of, and whether it is the key's own.
std::pair<const ConfigNode*, bool> node_of(const ConfigNode& root, std::string_view key) {
  const ConfigNode* node = &root;
  while (!key.empty()) {
    const bool is_index = key[0] == '[';
    const size_t end = is_index ? key.find(']') : std::min(key.find_first_of(".["), key.size());
    const std::string_view step = key.substr(is_index, end - is_index);
    key.remove_prefix(end + is_index);
    if (key.starts_with('.')) key.remove_prefix(1);
    const ConfigNode* next = nullptr;
    if (is_index) {
      size_t index = 0;
      std::from_chars(step.data(), step.data() + step.size(), index);
      if (node->kind == Kind::list && index < node->items.size()) next = &node->items[index];
    } else {
      next = config_detail::find_entry(*node, step);
    }
    if (!next) return {node, false};
    node = next;
  }
  return {node, true};
}

}  // namespace

std::string ConfigPlace::where(std::string_view key) const {
  return node_ ? node_of(*node_, key).first->where : "";
}

std::string ConfigPlace::blame(std::initializer_list<std::string_view> keys) const {
  const std::string_view first = *keys.begin();
  const auto given = std::find_if(keys.begin(), keys.end(),
                                  [&](std::string_view key) { return node_ && node_of(*node_, key).second; });
  const std::string place = where(given == keys.end() ? first : *given);
  const std::string separator = key_.empty() || first.empty() ? "" : ".";
  return (place.empty() ? "" : place + ": ") + key_ + separator + std::string(first);
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
  // What the type holds, within what the field allows.
  const auto limits = [&] {
    const bool has_low = place.range.low > static_cast<double>(low),
               has_high = place.range.high < static_cast<double>(high);
    return "an integer in [" + (has_low ? number_text(place.range.low) : std::to_string(low)) + ", " +
           (has_high ? number_text(place.range.high) : std::to_string(high)) + "]";
  };
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    if (error == std::errc::result_out_of_range) refuse(node, place, limits());
    const auto number = parse_number(node);
    if (!number || *number != std::floor(*number) || *number < static_cast<double>(low))
      refuse(node, place, expected);
    if (*number > static_cast<double>(high)) refuse(node, place, limits());
    // Beyond 2^53 a double no longer says which integer was meant.
    if (std::abs(*number) > 0x1p53) refuse(node, place, "all digits of an integer as large as that");
    value = static_cast<T>(*number);
  }
  if (value < low || value > high) refuse(node, place, limits());
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

std::string table_cell(std::string text) {
  for (size_t place = 0; (place = text.find('|', place)) != std::string::npos; place += 2)
    text.replace(place, 1, "\\|");
  return text;
}

}  // namespace

std::string fields_markdown(std::string_view title, std::span<const FieldInfo> fields) {
  std::string out = "# " + std::string(title) + "\n\n";
  out +=
      "Generated from the field lists; do not edit. An unknown key, a wrong type or a value out of range "
      "is an error.\n\n";
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
