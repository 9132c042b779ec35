#include "text/template_value.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "text/json_text.h"

namespace ropd::text {

namespace {

// Python's repr of a float: shortest digits that read back, an exponent below 1e-4 and from 1e16 on.
std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer;
  const double magnitude = std::abs(value);
  const bool has_exponent = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 has_exponent ? std::chars_format::scientific : std::chars_format::fixed)
                       .ptr;
  std::string text(buffer.data(), end);
  if (!has_exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

void append_escaped(std::string& result, unsigned char byte, std::string_view prefix) {
  constexpr std::string_view kHex = "0123456789abcdef";
  result += prefix;
  result.push_back(kHex[byte >> 4]);
  result.push_back(kHex[byte & 15]);
}

void append_json_string(std::string& result, std::string_view text) {
  result.push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\t':
        result += "\\t";
        break;
      case '\b':
        result += "\\b";
        break;
      case '\f':
        result += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          append_escaped(result, static_cast<unsigned char>(c), "\\u00");
        else
          result.push_back(c);
    }
  }
  result.push_back('"');
}

void append_python_string(std::string& result, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  result.push_back(quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      result.push_back('\\');
      result.push_back(c);
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      append_escaped(result, byte, "\\x");
    } else {
      result.push_back(c);
    }
  }
  result.push_back(quote);
}

uint64_t checked_weight(uint64_t weight) {
  if (weight > TemplateValue::kMaxWeight)
    fail("a list or dict of a chat template holds more than ", TemplateValue::kMaxWeight, " values");
  return weight;
}

TemplateValue from_element(simdjson::dom::element element, const std::string& where) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::NULL_VALUE:
      return TemplateValue::none();
    case element_type::BOOL:
      return TemplateValue::boolean(element.get<bool>().value_unsafe());
    case element_type::INT64:
      return TemplateValue::integer(element.get<int64_t>().value_unsafe());
    case element_type::UINT64:
      fail(where, ": the number ", element.get<uint64_t>().value_unsafe(),
           " is too large (expected below 2^63)");
    case element_type::DOUBLE:
      return TemplateValue::real(element.get<double>().value_unsafe());
    case element_type::STRING:
      return TemplateValue::string(std::string(element.get<std::string_view>().value_unsafe()));
    case element_type::ARRAY: {
      TemplateList items;
      const simdjson::dom::array array = element.get<simdjson::dom::array>().value_unsafe();
      for (const auto item : array) items.push_back(from_element(item, where));
      return TemplateValue::list(std::move(items));
    }
    case element_type::OBJECT: {
      TemplateDict entries;
      const simdjson::dom::object object = element.get<simdjson::dom::object>().value_unsafe();
      for (const auto& [key, item] : object)
        entries.emplace_back(std::string(key), from_element(item, where));
      return TemplateValue::dict(std::move(entries));
    }
  }
  fail(where, ": unknown kind of JSON value");
}

}  // namespace

TemplateValue TemplateValue::undefined(std::string name) {
  TemplateValue result;
  result.value_ = Undefined{std::move(name)};
  return result;
}

TemplateValue TemplateValue::none() {
  TemplateValue result;
  result.value_ = None{};
  return result;
}

TemplateValue TemplateValue::boolean(bool value) {
  TemplateValue result;
  result.value_ = value;
  return result;
}

TemplateValue TemplateValue::integer(int64_t value) {
  TemplateValue result;
  result.value_ = value;
  return result;
}

TemplateValue TemplateValue::real(double value) {
  TemplateValue result;
  result.value_ = value;
  return result;
}

TemplateValue TemplateValue::string(std::string value) {
  TemplateValue result;
  result.value_ = std::make_shared<const std::string>(std::move(value));
  return result;
}

TemplateValue TemplateValue::list(TemplateList items) {
  Nested<TemplateList> nested;
  for (const auto& item : items) {
    nested.depth = std::max(nested.depth, item.depth() + 1);
    nested.weight = checked_weight(nested.weight + item.weight());
  }
  nested.items = std::move(items);
  TemplateValue result;
  result.value_ = std::make_shared<const Nested<TemplateList>>(std::move(nested));
  return result;
}

TemplateValue TemplateValue::dict(TemplateDict entries) {
  Nested<TemplateDict> nested;
  for (const auto& [key, item] : entries) {
    nested.depth = std::max(nested.depth, item.depth() + 1);
    nested.weight = checked_weight(nested.weight + 1 + key.size() / 16 + item.weight());
  }
  nested.items = std::move(entries);
  TemplateValue result;
  result.value_ = std::make_shared<const Nested<TemplateDict>>(std::move(nested));
  return result;
}

TemplateValue TemplateValue::name_space(TemplateDict entries) {
  TemplateValue result;
  result.value_ = std::make_shared<Namespace>();
  for (auto& [key, item] : entries) result.assign(key, std::move(item));
  return result;
}

TemplateValue TemplateValue::macro(const MacroStatement* statement) {
  TemplateValue result;
  result.value_ = statement;
  return result;
}

TemplateValue TemplateValue::from_json(std::string_view json, const std::string& where) {
  const JsonDocument document(json, where);
  return from_element(document.root(), where);
}

std::string_view TemplateValue::kind_name() const {
  constexpr std::array<std::string_view, 10> kNames = {"undefined", "none", "boolean", "integer",   "float",
                                                       "string",    "list", "dict",    "namespace", "macro"};
  return kNames[value_.index()];
}

bool TemplateValue::is_true() const {
  switch (kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return as_boolean();
    case Kind::integer:
      return as_integer() != 0;
    case Kind::real:
      return as_real() != 0;
    case Kind::string:
      return !as_string().empty();
    case Kind::list:
      return !as_list().empty();
    case Kind::dict:
      return !as_dict().empty();
    case Kind::name_space:
    case Kind::macro:
      return true;
  }
  return false;
}

int64_t TemplateValue::as_integer() const {
  return is(Kind::boolean) ? static_cast<int64_t>(as_boolean()) : std::get<int64_t>(value_);
}

double TemplateValue::as_real() const {
  return is(Kind::real) ? std::get<double>(value_) : static_cast<double>(as_integer());
}

const TemplateDict& TemplateValue::as_dict() const {
  if (is(Kind::name_space)) return std::get<std::shared_ptr<Namespace>>(value_)->entries;
  return std::get<std::shared_ptr<const Nested<TemplateDict>>>(value_)->items;
}

const TemplateValue* TemplateValue::find(std::string_view key) const {
  for (const auto& [name, value] : as_dict())
    if (name == key) return &value;
  return nullptr;
}

void TemplateValue::assign(const std::string& key, TemplateValue value) const {
  // A namespace inside a namespace could hold itself; so it is refused, as inside lists (see depth()).
  if (value.is(Kind::name_space)) fail("a namespace cannot be stored in a namespace (\"", key, "\")");
  auto& entries = std::get<std::shared_ptr<Namespace>>(value_)->entries;
  for (auto& [name, old] : entries)
    if (name == key) {
      old = std::move(value);
      return;
    }
  entries.emplace_back(key, std::move(value));
}

int TemplateValue::depth() const {
  int depth = 0;
  if (is(Kind::name_space)) fail("a namespace cannot be stored in a list or dict");
  if (is(Kind::list)) depth = std::get<std::shared_ptr<const Nested<TemplateList>>>(value_)->depth;
  if (is(Kind::dict)) depth = std::get<std::shared_ptr<const Nested<TemplateDict>>>(value_)->depth;
  if (depth >= kMaxDepth) fail("lists or dicts are nested deeper than ", kMaxDepth, " levels");
  return depth;
}

uint64_t TemplateValue::weight() const {
  if (is(Kind::string)) return 1 + as_string().size() / 16;
  if (is(Kind::list)) return std::get<std::shared_ptr<const Nested<TemplateList>>>(value_)->weight;
  if (is(Kind::dict)) return std::get<std::shared_ptr<const Nested<TemplateDict>>>(value_)->weight;
  return 1;
}

bool TemplateValue::operator==(const TemplateValue& other) const {
  if (is_number() && other.is_number()) {
    if (is(Kind::real) || other.is(Kind::real)) return as_real() == other.as_real();
    return as_integer() == other.as_integer();
  }
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      return as_string() == other.as_string();
    case Kind::list:
      return as_list() == other.as_list();
    case Kind::dict: {
      if (as_dict().size() != other.as_dict().size()) return false;
      return std::all_of(as_dict().begin(), as_dict().end(), [&](const auto& entry) {
        const TemplateValue* found = other.find(entry.first);
        return found != nullptr && *found == entry.second;
      });
    }
    default:
      return false;  // namespaces and macros are compared by nobody
  }
}

std::string TemplateValue::text() const {
  if (is(Kind::undefined)) return "";
  if (is(Kind::string)) return as_string();
  std::string result;
  append_repr(result);
  return result;
}

void TemplateValue::append_repr(std::string& result) const {
  std::string_view separator;
  switch (kind()) {
    case Kind::undefined:
      result += "Undefined";
      break;
    case Kind::none:
      result += "None";
      break;
    case Kind::boolean:
      result += as_boolean() ? "True" : "False";
      break;
    case Kind::integer:
      result += std::to_string(as_integer());
      break;
    case Kind::real:
      result += python_float(as_real());
      break;
    case Kind::string:
      append_python_string(result, as_string());
      break;
    case Kind::list:
      result += "[";
      for (const auto& item : as_list()) {
        result += std::exchange(separator, ", ");
        item.append_repr(result);
      }
      result += "]";
      break;
    case Kind::dict:
      result += "{";
      for (const auto& [key, item] : as_dict()) {
        result += std::exchange(separator, ", ");
        append_python_string(result, key);
        result += ": ";
        item.append_repr(result);
      }
      result += "}";
      break;
    case Kind::name_space:
      result += "<Namespace>";
      break;
    case Kind::macro:
      result += "<Macro>";
      break;
  }
}

std::string TemplateValue::json(int indent) const {
  std::string result;
  append_json(result, indent, 0);
  return result;
}

void TemplateValue::append_json(std::string& result, int indent, int level) const {
  const auto new_line = [&](int at) {
    if (indent < 0) return;
    result.push_back('\n');
    result.append(static_cast<size_t>(indent) * static_cast<size_t>(at), ' ');
  };
  const std::string_view comma = indent < 0 ? ", " : ",";
  std::string_view separator;
  switch (kind()) {
    case Kind::none:
      result += "null";
      break;
    case Kind::boolean:
      result += as_boolean() ? "true" : "false";
      break;
    case Kind::integer:
      result += std::to_string(as_integer());
      break;
    case Kind::real:
      if (!std::isfinite(as_real())) fail("tojson of the number ", python_float(as_real()));
      result += python_float(as_real());
      break;
    case Kind::string:
      append_json_string(result, as_string());
      break;
    case Kind::list:
      result += "[";
      for (const auto& item : as_list()) {
        result += std::exchange(separator, comma);
        new_line(level + 1);
        item.append_json(result, indent, level + 1);
      }
      if (!as_list().empty()) new_line(level);
      result += "]";
      break;
    case Kind::dict:
      result += "{";
      for (const auto& [key, item] : as_dict()) {
        result += std::exchange(separator, comma);
        new_line(level + 1);
        append_json_string(result, key);
        result += ": ";
        item.append_json(result, indent, level + 1);
      }
      if (!as_dict().empty()) new_line(level);
      result += "}";
      break;
    default:
      fail("tojson of a value that is ", kind_name(), " (expected JSON data)");
  }
}

}  // namespace ropd::text
