// Typed configuration from one field list per struct. A struct declares
//   void fields(auto&& field) { field("learning_rate", learning_rate, "AdamW step size", above(0)); ... }
// and that list drives parsing, defaults, help, saving and docs/config.md. A field may be bool, an integer,
// double, std::string, std::optional<T> (null = absent), Auto<T> (`auto` = absent), std::vector<T>,
// std::array<T, n>, an enum with an `enum_names(T)` table (a list of those may be given as one name alone), or a
// struct with fields(). An optional `void
// validate(const ConfigPlace&) const` runs after a struct was read, inner structs first. Source: a YAML file
// plus key=value overrides (a.b.c=value, value parsed as YAML; a number in the key indexes a list). Errors
// name file, line, key, the value, what was expected, and for an unknown key the nearest valid one. The text
// itself is read by base/yaml.h; the templates here only walk the field lists.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/yaml.h"

namespace ropd {

// The numbers a field may hold; for a list, each of its numbers.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool excludes_low = false;
  bool contains(double value) const { return value <= high && (excludes_low ? value > low : value >= low); }
  std::string text() const;  // "> 0", "in [0, 1]", "" when unbounded
};
constexpr Range above(double low) { return {.low = low, .excludes_low = true}; }
constexpr Range at_least(double low) { return {.low = low}; }
constexpr Range between(double low, double high) { return {.low = low, .high = high}; }

// A number that the program chooses itself unless it is given; spelled `auto`.
template <class T>
struct Auto {
  std::optional<T> value;
  bool operator==(const Auto&) const = default;
};

// One row of an enum's table:
//   constexpr auto enum_names(Eos) {
//     return std::array{EnumName{Eos::all, "all"}, EnumName{Eos::none, "none"}}; }
template <class E>
struct EnumName {
  E value;
  std::string_view name;
};
template <class E>
EnumName(E, std::string_view) -> EnumName<E>;

template <class T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
  enum_names(value);
};

template <NamedEnum E>
constexpr std::string_view enum_text(E value) {
  for (const auto& row : enum_names(value)) {
    if (row.value == value) return row.name;
  }
  return "?";
}

// One key of a configuration, for help and documents.
struct FieldInfo {
  std::string key;            // train.learning_rate, curriculum.stages[].source
  std::string type;           // number > 0, one of all | none | only
  std::string default_value;  // as YAML; empty for a section
  std::string help;
  bool is_section = false;
};

// The map that a text holds, with overrides applied; `where` names it in errors.
ConfigNode parse_yaml(std::string_view text, std::string_view where,
                      std::span<const std::string> overrides = {});
std::string fields_markdown(std::string_view title, std::span<const FieldInfo> fields);
std::string fields_text(std::span<const FieldInfo> fields);  // for --help
// The candidate with the smallest edit distance, or empty when none is near.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// Where the values of a struct were given, for its validate(): names the key to blame with file and line.
// Refers to the parsed text; empty for values that come from code.
class ConfigPlace {
 public:
  ConfigPlace() = default;
  ConfigPlace(const ConfigNode& node, std::string key) : node_(&node), key_(std::move(key)) {}
  // Fails with "run.yaml:12: train.minibatch" in front of the parts: the first key's full name (keys are
  // relative to the struct: bank.responses, stages[0].of; empty for the struct itself), and the place of the
  // first key that was given at all, else of the section around it. What an override set is named as the
  // override.
  template <class... Parts>
  [[noreturn]] void refuse(std::initializer_list<std::string_view> keys, const Parts&... parts) const {
    fail(blame(keys), parts...);
  }
  std::string where(std::string_view key) const;  // run.yaml:12, or empty

 private:
  const ConfigNode* node_ = nullptr;
  std::string key_;
  std::string blame(std::initializer_list<std::string_view> keys) const;
};

namespace config_detail {

template <class T>
concept HasFields = std::is_class_v<T> && requires(T& value) {
  value.fields([](auto&&...) {});
};
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

// Where a value stands; all_fields serves suggestions for misplaced keys.
struct Place {
  std::string key;
  const std::vector<FieldInfo>* all_fields = nullptr;
  Range range = {};
  Place child(std::string_view name) const;
  Place item(size_t index) const;
};

[[noreturn]] void refuse(const ConfigNode& node, const Place& place, std::string_view expected);
[[noreturn]] void refuse_key(const ConfigNode& child, const Place& place,
                             const std::vector<std::string>& known);
bool is_auto(const ConfigNode& node);
void expect_kind(const ConfigNode& node, const Place& place, ConfigNode::Kind kind);
const ConfigNode* find_entry(const ConfigNode& node, std::string_view name);
void refuse_unknown(const ConfigNode& node, const Place& place, const std::vector<std::string>& known);
int64_t read_integer(const ConfigNode& node, const Place& place, int64_t low, int64_t high);
uint64_t read_unsigned(const ConfigNode& node, const Place& place, uint64_t high);
size_t read_choice(const ConfigNode& node, const Place& place, std::span<const std::string_view> names);
void read_value(bool& value, const ConfigNode& node, const Place& place);
void read_value(double& value, const ConfigNode& node, const Place& place);
void read_value(std::string& value, const ConfigNode& node, const Place& place);

ConfigNode to_node(bool value);
ConfigNode to_node(double value);
ConfigNode to_node(const std::string& value);
ConfigNode scalar_node(std::string text);

template <NamedEnum E>
std::vector<std::string_view> names_of() {
  std::vector<std::string_view> names;
  for (const auto& row : enum_names(E{})) names.push_back(row.name);
  return names;
}
std::string joined(std::span<const std::string_view> names, std::string_view separator);

// Declared first: the templates call each other.
template <class T>
void read_value(std::optional<T>& value, const ConfigNode& node, const Place& place);
template <class T>
void read_value(Auto<T>& value, const ConfigNode& node, const Place& place);
template <class T>
void read_value(std::vector<T>& value, const ConfigNode& node, const Place& place);
template <class T, size_t n>
void read_value(std::array<T, n>& value, const ConfigNode& node, const Place& place);
template <HasFields T>
void read_value(T& value, const ConfigNode& node, const Place& place);

template <Integer T>
void read_value(T& value, const ConfigNode& node, const Place& place) {
  if constexpr (std::is_signed_v<T>) {
    value = static_cast<T>(
        read_integer(node, place, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else {
    value = static_cast<T>(read_unsigned(node, place, std::numeric_limits<T>::max()));
  }
}
template <NamedEnum E>
void read_value(E& value, const ConfigNode& node, const Place& place) {
  const auto names = names_of<E>();
  value = enum_names(E{})[read_choice(node, place, names)].value;
}
template <class T>
void read_value(std::optional<T>& value, const ConfigNode& node, const Place& place) {
  if (node.kind == ConfigNode::Kind::null) {
    value.reset();
  } else {
    T inner{};
    read_value(inner, node, place);
    value = std::move(inner);
  }
}
template <class T>
void read_value(Auto<T>& value, const ConfigNode& node, const Place& place) {
  if (is_auto(node)) {
    value.value.reset();
  } else {
    T inner{};
    read_value(inner, node, place);
    value.value = std::move(inner);
  }
}
template <class T>
void read_value(std::vector<T>& value, const ConfigNode& node, const Place& place) {
  if constexpr (NamedEnum<T>)
    if (node.kind == ConfigNode::Kind::scalar) {
      value.resize(1);
      return read_value(value[0], node, place);
    }
  expect_kind(node, place, ConfigNode::Kind::list);
  value.clear();
  for (size_t i = 0; i < node.items.size(); ++i) {
    T inner{};
    read_value(inner, node.items[i], place.item(i));
    value.push_back(std::move(inner));
  }
}
template <class T, size_t n>
void read_value(std::array<T, n>& value, const ConfigNode& node, const Place& place) {
  expect_kind(node, place, ConfigNode::Kind::list);
  if (node.items.size() != n) refuse(node, place, "a list of " + std::to_string(n) + " values");
  for (size_t i = 0; i < n; ++i) read_value(value[i], node.items[i], place.item(i));
}
template <HasFields T>
void read_value(T& value, const ConfigNode& node, const Place& place) {
  std::vector<std::string> known;
  if (node.kind != ConfigNode::Kind::null)
    expect_kind(node, place, ConfigNode::Kind::map);  // "data:" with nothing below
  value.fields([&](std::string_view name, auto& member, std::string_view, Range range = {}) {
    known.emplace_back(name);
    if (const ConfigNode* child = find_entry(node, name)) {
      Place inner = place.child(name);
      inner.range = range;
      read_value(member, *child, inner);
    } else if constexpr (HasFields<std::remove_reference_t<decltype(member)>>) {
      read_value(member, ConfigNode{.where = node.where},
                 place.child(name));  // all defaults; still validated
    }
  });
  refuse_unknown(node, place, known);
  if constexpr (requires { value.validate(ConfigPlace{}); }) value.validate(ConfigPlace(node, place.key));
}

template <class T>
ConfigNode to_node(const std::optional<T>& value);
template <class T>
ConfigNode to_node(const Auto<T>& value);
template <class T>
ConfigNode to_node(const std::vector<T>& value);
template <class T, size_t n>
ConfigNode to_node(const std::array<T, n>& value);
template <HasFields T>
ConfigNode to_node(const T& value);

template <Integer T>
ConfigNode to_node(T value) {
  return scalar_node(std::to_string(value));
}
template <NamedEnum E>
ConfigNode to_node(E value) {
  return to_node(std::string(enum_text(value)));
}
template <class T>
ConfigNode to_node(const std::optional<T>& value) {
  return value ? to_node(*value) : ConfigNode{};
}
template <class T>
ConfigNode to_node(const Auto<T>& value) {
  return value.value ? to_node(*value.value) : scalar_node("auto");
}
template <class Items>
ConfigNode list_node(const Items& items) {
  ConfigNode node{.kind = ConfigNode::Kind::list};
  for (const auto& item : items) node.items.push_back(to_node(item));
  return node;
}
template <class T>
ConfigNode to_node(const std::vector<T>& value) {
  return list_node(value);
}
template <class T, size_t n>
ConfigNode to_node(const std::array<T, n>& value) {
  return list_node(value);
}
template <HasFields T>
ConfigNode to_node(const T& value) {
  ConfigNode node{.kind = ConfigNode::Kind::map};
  T copy = value;  // fields() serves reading too, so it needs a mutable object
  copy.fields([&](std::string_view name, auto& member, std::string_view help, Range = {}) {
    node.items.push_back(to_node(std::as_const(member)));
    node.items.back().name = name;
    node.items.back().comment = help;
  });
  return node;
}

template <class T>
struct Described {};  // selects an overload of describe by type

std::string number_type(std::string_view noun, const Range& range);
template <class T>
std::string type_text(Described<T>, const Range& range) {
  if constexpr (std::same_as<T, bool>) {
    return "true or false";
  } else if constexpr (Integer<T>) {
    return number_type("integer", std::is_unsigned_v<T> && range.low < 0 ? Range{0, range.high} : range);
  } else if constexpr (std::same_as<T, double>) {
    return number_type("number", range);
  } else if constexpr (NamedEnum<T>) {
    return joined(names_of<T>(), " or ");
  } else if constexpr (HasFields<T>) {
    return "section";
  } else {
    return "text";
  }
}
template <class T>
std::string type_text(Described<std::optional<T>>, const Range& range) {
  return type_text(Described<T>{}, range) + " or null";
}
template <class T>
std::string type_text(Described<Auto<T>>, const Range& range) {
  return type_text(Described<T>{}, range) + " or auto";
}
template <class T>
std::string type_text(Described<std::vector<T>>, const Range& range) {
  return "list of " + type_text(Described<T>{}, range);
}
template <class T, size_t n>
std::string type_text(Described<std::array<T, n>>, const Range& range) {
  return "list of " + std::to_string(n) + ": " + type_text(Described<T>{}, range);
}

// The struct inside a field's type whose own fields are listed below it, if there is one.
template <class T>
struct Inner {
  using type = T;
};
template <class T>
struct Inner<std::optional<T>> : Inner<T> {};
template <class T>
struct Inner<std::vector<T>> : Inner<T> {};

template <HasFields T>
void describe(T& value, const std::string& prefix, std::vector<FieldInfo>& out) {
  value.fields([&]<class M>(std::string_view name, M& member, std::string_view help, Range range = {}) {
    using Struct = typename Inner<M>::type;
    FieldInfo info{prefix + std::string(name), type_text(Described<M>{}, range), "", std::string(help),
                   HasFields<M>};
    if (!info.is_section) info.default_value = write_value(to_node(std::as_const(member)));
    const std::string key = info.key;
    out.push_back(std::move(info));
    if constexpr (HasFields<M>) {
      describe(member, key + ".", out);
    } else if constexpr (HasFields<Struct>) {
      Struct example{};
      describe(example, key + (requires { member.push_back(example); } ? "[]." : "."), out);
    }
  });
}

}  // namespace config_detail

// All keys of a configuration with their defaults, in the order of the field lists.
template <class C>
std::vector<FieldInfo> config_field_list() {
  C defaults{};
  std::vector<FieldInfo> out;
  config_detail::describe(defaults, "", out);
  return out;
}

template <class C>
C parse_config(std::string_view yaml_text, std::string_view where,
               std::span<const std::string> overrides = {}) {
  const ConfigNode root = parse_yaml(yaml_text, where, overrides);
  const auto all_fields = config_field_list<C>();
  C config{};
  config_detail::read_value(config, root, config_detail::Place{.key = "", .all_fields = &all_fields});
  return config;
}

template <class C>
C load_config(const Path& path, std::span<const std::string> overrides = {}) {
  return parse_config<C>(read_file(path, 1 << 20), path.string(), overrides);
}

// parse_config of the result gives an equal config.
template <class C>
std::string config_to_yaml(const C& config, bool with_comments = false) {
  return write_yaml(config_detail::to_node(config), with_comments);
}

// A key whose value differs between two configurations, as config_to_yaml writes both.
struct ConfigDifference {
  std::string key, before, after;
};

// In the order of the field lists; a list counts as one value.
template <class C>
std::vector<ConfigDifference> config_differences(C before, C after) {
  std::vector<FieldInfo> old_values, new_values;
  config_detail::describe(before, "", old_values);
  config_detail::describe(after, "", new_values);
  std::vector<ConfigDifference> differences;
  for (size_t i = 0; i < old_values.size(); ++i)
    if (old_values[i].default_value != new_values[i].default_value)
      differences.push_back({old_values[i].key, old_values[i].default_value, new_values[i].default_value});
  return differences;
}

// The content of docs/config.md.
template <class C>
std::string config_reference_markdown(std::string_view title) {
  return fields_markdown(title, config_field_list<C>());
}

}  // namespace ropd
