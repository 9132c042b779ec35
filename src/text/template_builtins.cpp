#include "text/template_builtins.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/unicode.h"

namespace ropd::text {

namespace {

using Kind = TemplateValue::Kind;

bool is_python_space(char32_t point) { return is_white_space(point) || (point >= 0x1C && point <= 0x1F); }

const std::string& string_argument(const TemplateCall& call, size_t index, std::string_view key) {
  const TemplateValue* argument = call.argument(index, key);
  if (argument == nullptr || !argument->is(Kind::string))
    call.refuse("\"", call.name, "\" needs a string as argument ", index + 1);
  return argument->as_string();
}

enum class Side { both, left, right };

// Python's strip: white space, or any of the given characters.
std::string strip(std::string_view text, const TemplateValue* characters, Side side,
                  const TemplateCall& call) {
  if (characters != nullptr && !characters->is(Kind::string) && !characters->is(Kind::none))
    call.refuse("\"", call.name, "\" needs a string of characters");
  const bool has_set = characters != nullptr && characters->is(Kind::string);
  const auto goes = [&](size_t begin) {
    const CodePoint point = code_point_at(text, begin);
    if (!has_set) return is_python_space(point.value);
    return characters->as_string().find(text.substr(begin, point.num_bytes)) != std::string::npos;
  };
  if (side != Side::right)
    while (!text.empty() && goes(0)) text.remove_prefix(code_point_at(text, 0).num_bytes);
  if (side != Side::left)
    while (!text.empty() && goes(character_begin_before(text, text.size())))
      text = text.substr(0, character_begin_before(text, text.size()));
  return std::string(text);
}

std::string with_case(std::string_view text, bool is_upper) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const auto value = static_cast<utf8proc_int32_t>(point.value);
    append_utf8(result, static_cast<char32_t>(is_upper ? utf8proc_toupper(value) : utf8proc_tolower(value)));
    i += point.num_bytes;
  }
  return result;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return "";
  const size_t first = code_point_at(text, 0).num_bytes;
  return with_case(text.substr(0, first), true) + with_case(text.substr(first), false);
}

std::string titled(std::string_view text) {
  std::string result;
  bool begins_word = true;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    result += with_case(text.substr(i, point.num_bytes), begins_word);
    begins_word = point.value < 0x80 && !std::isalpha(static_cast<int>(point.value));
    i += point.num_bytes;
  }
  return result;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to, int64_t max_count,
                     const TemplateCall& call) {
  if (from.empty()) call.refuse("replace of an empty string is not supported");
  std::string result;
  size_t at = 0;
  for (int64_t count = 0; max_count < 0 || count < max_count; ++count) {
    const size_t found = text.find(from, at);
    if (found == std::string_view::npos) break;
    call.meter.charge_bytes(found - at + to.size(), call.line);
    result.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return result.append(text.substr(at));
}

TemplateValue split(std::string_view text, const TemplateValue* separator, int64_t max_splits,
                    const TemplateCall& call) {
  TemplateList parts;
  const auto push = [&](std::string_view part) {
    call.meter.charge_bytes(part.size(), call.line);
    parts.push_back(TemplateValue::string(std::string(part)));
  };
  const auto has_room = [&] { return max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits; };
  if (separator != nullptr && !separator->is(Kind::none)) {
    const std::string& by = string_argument(call, 0, "sep");
    if (by.empty()) call.refuse("split by an empty string");
    size_t at = 0;
    for (size_t found; has_room() && (found = text.find(by, at)) != std::string_view::npos;
         at = found + by.size())
      push(text.substr(at, found - at));
    push(text.substr(at));
    return TemplateValue::list(std::move(parts));
  }
  const auto skip = [&](size_t at, bool over_space) {
    while (at < text.size() && is_python_space(code_point_at(text, at).value) == over_space)
      at += code_point_at(text, at).num_bytes;
    return at;
  };
  for (size_t at = skip(0, true); at < text.size();) {
    if (!has_room()) {
      push(strip(text.substr(at), nullptr, Side::right, call));
      break;
    }
    const size_t end = skip(at, false);
    push(text.substr(at, end - at));
    at = skip(end, true);
  }
  return TemplateValue::list(std::move(parts));
}

bool has_affix(std::string_view text, const TemplateCall& call, bool is_prefix) {
  const TemplateValue* argument = call.argument(0, "prefix");
  const auto matches = [&](const TemplateValue& affix) {
    if (!affix.is(Kind::string)) call.refuse("\"", call.name, "\" needs a string or a tuple of strings");
    return is_prefix ? text.starts_with(affix.as_string()) : text.ends_with(affix.as_string());
  };
  if (argument != nullptr && argument->is(Kind::list))
    return std::any_of(argument->as_list().begin(), argument->as_list().end(), matches);
  return matches(argument != nullptr ? *argument : TemplateValue());
}

int64_t integer_argument(const TemplateCall& call, size_t index, std::string_view key, int64_t if_absent) {
  const TemplateValue* argument = call.argument(index, key);
  if (argument == nullptr) return if_absent;
  if (!argument->is(Kind::integer)) call.refuse("\"", call.name, "\" needs a whole number as ", key);
  return argument->as_integer();
}

int64_t count_of(std::string_view text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos && !part.empty();
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

std::string join(const TemplateList& items, std::string_view separator, const TemplateCall& call) {
  std::string result;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) result += separator;
    call.meter.charge(items[i].weight() + separator.size() / 16, call.line);
    result += items[i].text();
  }
  return result;
}

size_t num_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

TemplateValue length_of(const TemplateCall& call) {
  const TemplateValue& value = call.value;
  switch (value.kind()) {
    case Kind::undefined:
      return TemplateValue::integer(0);
    case Kind::string:
      return TemplateValue::integer(static_cast<int64_t>(num_characters(value.as_string())));
    case Kind::list:
      return TemplateValue::integer(static_cast<int64_t>(value.as_list().size()));
    case Kind::dict:
      return TemplateValue::integer(static_cast<int64_t>(value.as_dict().size()));
    default:
      call.refuse("a value that is ", value.kind_name(), " has no length");
  }
}

TemplateValue to_integer(const TemplateCall& call) {
  const TemplateValue& value = call.value;
  const TemplateValue* fallback = call.argument(0, "default");
  if (value.is(Kind::integer) || value.is(Kind::boolean)) return TemplateValue::integer(value.as_integer());
  if (value.is(Kind::real) && std::abs(value.as_real()) < 9e18)
    return TemplateValue::integer(static_cast<int64_t>(value.as_real()));
  if (value.is(Kind::string)) {
    const std::string text = strip(value.as_string(), nullptr, Side::both, call);
    int64_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ec == std::errc{} && result.ptr == text.data() + text.size() && !text.empty())
      return TemplateValue::integer(number);
  }
  return fallback != nullptr ? *fallback : TemplateValue::integer(0);
}

TemplateValue pairs_of(const TemplateValue& value, const TemplateCall& call) {
  TemplateList pairs;
  if (value.is(Kind::undefined)) return TemplateValue::list({});
  if (!value.is(Kind::dict))
    call.refuse("items of a value that is ", value.kind_name(), " (expected a dict)");
  call.meter.charge(value.as_dict().size() * 2, call.line);
  for (const auto& [key, item] : value.as_dict())
    pairs.push_back(TemplateValue::list({TemplateValue::string(key), item}));
  return TemplateValue::list(std::move(pairs));
}

TemplateValue attribute_of(const TemplateValue& value, const std::string& name) {
  if (value.is(Kind::dict))
    if (const TemplateValue* found = value.find(name)) return *found;
  return TemplateValue::undefined(name);
}

// selectattr, rejectattr and map(attribute=...): by an attribute's truth, or by a test on it.
TemplateValue select_by_attribute(const TemplateCall& call, bool keeps) {
  const std::string& name = string_argument(call, 0, "attribute");
  TemplateList kept;
  for (const TemplateValue& item : items_of(call.value, call)) {
    const TemplateValue attribute = attribute_of(item, name);
    bool holds = attribute.is_true();
    if (call.positional.size() > 1) {
      const std::string test_name = string_argument(call, 1, "test");
      TemplateCall test{test_name, attribute, {}, {}, call.line, call.where, call.meter};
      test.positional.assign(call.positional.begin() + 2, call.positional.end());
      holds = apply_test(test);
    }
    if (holds == keeps) kept.push_back(item);
  }
  return TemplateValue::list(std::move(kept));
}

TemplateValue map_attribute(const TemplateCall& call) {
  if (call.named.empty() || call.named[0].first != "attribute" || !call.named[0].second.is(Kind::string))
    call.refuse("map is supported only as map(attribute=\"name\")");
  TemplateList result;
  for (const TemplateValue& item : items_of(call.value, call))
    result.push_back(attribute_of(item, call.named[0].second.as_string()));
  return TemplateValue::list(std::move(result));
}

TemplateValue string_filter(const TemplateCall& call) {
  call.meter.charge(call.value.weight(), call.line);
  const std::string text = call.value.text();
  const std::string_view name = call.name;
  if (name == "trim") return TemplateValue::string(strip(text, call.argument(0, "chars"), Side::both, call));
  if (name == "upper") return TemplateValue::string(with_case(text, true));
  if (name == "lower") return TemplateValue::string(with_case(text, false));
  if (name == "capitalize") return TemplateValue::string(capitalized(text));
  if (name == "title") return TemplateValue::string(titled(text));
  if (name == "replace")
    return TemplateValue::string(replaced(text, string_argument(call, 0, "old"),
                                          string_argument(call, 1, "new"),
                                          integer_argument(call, 2, "count", -1), call));
  return TemplateValue::string(text);  // string, safe
}

TemplateValue list_filter(const TemplateCall& call) {
  const std::string_view name = call.name;
  TemplateList items = items_of(call.value, call);
  if (name == "list") return TemplateValue::list(std::move(items));
  if (name == "first" || name == "last") {
    if (items.empty()) return TemplateValue::undefined(std::string(name) + " of an empty list");
    return name == "first" ? items.front() : items.back();
  }
  if (name == "reverse") {
    std::reverse(items.begin(), items.end());
    if (!call.value.is(Kind::string)) return TemplateValue::list(std::move(items));
    return TemplateValue::string(join(items, "", call));
  }
  const TemplateValue* separator = call.argument(0, "d");  // join
  return TemplateValue::string(join(items, separator != nullptr ? separator->text() : "", call));
}

TemplateValue string_method(const TemplateCall& call) {
  const std::string& text = call.value.as_string();
  const std::string_view name = call.name;
  call.meter.charge_bytes(text.size(), call.line);
  const TemplateValue* first = call.argument(0, "");
  if (name == "strip") return TemplateValue::string(strip(text, first, Side::both, call));
  if (name == "lstrip") return TemplateValue::string(strip(text, first, Side::left, call));
  if (name == "rstrip") return TemplateValue::string(strip(text, first, Side::right, call));
  if (name == "split")
    return split(text, call.argument(0, "sep"), integer_argument(call, 1, "maxsplit", -1), call);
  if (name == "startswith") return TemplateValue::boolean(has_affix(text, call, true));
  if (name == "endswith") return TemplateValue::boolean(has_affix(text, call, false));
  if (name == "upper") return TemplateValue::string(with_case(text, true));
  if (name == "lower") return TemplateValue::string(with_case(text, false));
  if (name == "capitalize") return TemplateValue::string(capitalized(text));
  if (name == "title") return TemplateValue::string(titled(text));
  if (name == "replace")
    return TemplateValue::string(replaced(text, string_argument(call, 0, "old"),
                                          string_argument(call, 1, "new"),
                                          integer_argument(call, 2, "count", -1), call));
  if (name == "find") {
    const size_t found = text.find(string_argument(call, 0, "sub"));
    if (found == std::string::npos) return TemplateValue::integer(-1);
    return TemplateValue::integer(
        static_cast<int64_t>(num_characters(std::string_view(text).substr(0, found))));
  }
  if (name == "count") return TemplateValue::integer(count_of(text, string_argument(call, 0, "sub")));
  if (name == "join" && first != nullptr)
    return TemplateValue::string(join(items_of(*first, call), text, call));
  if (name == "removeprefix") {
    const std::string& prefix = string_argument(call, 0, "prefix");
    return TemplateValue::string(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
  }
  if (name == "removesuffix") {
    const std::string& suffix = string_argument(call, 0, "suffix");
    return TemplateValue::string(text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text);
  }
  call.refuse("the string method \"", name, "\" is not supported");
}

TemplateValue dict_method(const TemplateCall& call) {
  if (call.name == "items") return pairs_of(call.value, call);
  if (call.name == "keys") return TemplateValue::list(items_of(call.value, call));
  if (call.name == "get") {
    if (const TemplateValue* found = call.value.find(string_argument(call, 0, "key"))) return *found;
    const TemplateValue* fallback = call.argument(1, "default");
    return fallback != nullptr ? *fallback : TemplateValue::none();
  }
  if (call.name == "values") {
    TemplateList values;
    call.meter.charge(call.value.as_dict().size(), call.line);
    for (const auto& [key, item] : call.value.as_dict()) values.push_back(item);
    return TemplateValue::list(std::move(values));
  }
  call.refuse("the dict method \"", call.name, "\" is not supported (templates cannot change their input)");
}

bool is_in(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const TemplateValue* TemplateCall::argument(size_t index, std::string_view key) const {
  if (index < positional.size()) return &positional[index];
  for (const auto& [name_given, given] : named)
    if (name_given == key) return &given;
  return nullptr;
}

bool is_dict_method(std::string_view name) {
  return is_in({"items", "keys", "values", "get", "pop", "update", "copy", "clear", "setdefault", "popitem",
                "fromkeys"},
               name);
}

TemplateList items_of(const TemplateValue& value, const TemplateCall& call) {
  TemplateList items;
  switch (value.kind()) {
    case Kind::undefined:
      break;
    case Kind::string: {
      const std::string& text = value.as_string();
      call.meter.charge(text.size(), call.line);
      for (size_t i = 0; i < text.size();) {
        const size_t bytes = code_point_at(text, i).num_bytes;
        items.push_back(TemplateValue::string(text.substr(i, bytes)));
        i += bytes;
      }
      break;
    }
    case Kind::list:
      call.meter.charge(value.as_list().size(), call.line);
      items = value.as_list();
      break;
    case Kind::dict:
      call.meter.charge(value.as_dict().size(), call.line);
      for (const auto& [key, item] : value.as_dict()) items.push_back(TemplateValue::string(key));
      break;
    default:
      call.refuse("a value that is ", value.kind_name(), " has no items to go through");
  }
  return items;
}

TemplateValue apply_filter(const TemplateCall& call) {
  const std::string_view name = call.name;
  if (name == "tojson") {
    const int64_t indent = integer_argument(call, 0, "indent", -1);
    if (indent > 16) call.refuse("tojson with indent ", indent, " (expected at most 16)");
    for (const auto& [key, value] : call.named)
      if (key != "indent" && key != "ensure_ascii") call.refuse("tojson with \"", key, "\" is not supported");
    call.meter.charge(call.value.weight() * 4, call.line);  // escapes and indentation make it longer
    return TemplateValue::string(call.value.json(static_cast<int>(indent)));
  }
  if (name == "length" || name == "count") return length_of(call);
  if (is_in({"trim", "upper", "lower", "capitalize", "title", "replace", "string", "safe"}, name))
    return string_filter(call);
  if (is_in({"list", "first", "last", "reverse", "join"}, name)) return list_filter(call);
  if (name == "default" || name == "d") {
    const TemplateValue* also_false = call.argument(1, "boolean");
    const bool is_missing = call.value.is(Kind::undefined) ||
                            (also_false != nullptr && also_false->is_true() && !call.value.is_true());
    if (!is_missing) return call.value;
    const TemplateValue* fallback = call.argument(0, "default_value");
    return fallback != nullptr ? *fallback : TemplateValue::string("");
  }
  if (name == "int") return to_integer(call);
  if (name == "items") return pairs_of(call.value, call);
  if (name == "selectattr") return select_by_attribute(call, true);
  if (name == "rejectattr") return select_by_attribute(call, false);
  if (name == "map") return map_attribute(call);
  if (name == "abs" && call.value.is(Kind::integer) && call.value.as_integer() != INT64_MIN)
    return TemplateValue::integer(std::abs(call.value.as_integer()));
  call.refuse("the filter \"", name, "\" is not supported");
}

bool apply_test(const TemplateCall& call) {
  const TemplateValue& value = call.value;
  const std::string_view name = call.name;
  if (name == "defined") return !value.is(Kind::undefined);
  if (name == "undefined") return value.is(Kind::undefined);
  if (name == "none") return value.is(Kind::none);
  if (name == "string") return value.is(Kind::string);
  if (name == "number") return value.is_number();
  if (name == "integer") return value.is(Kind::integer);
  if (name == "float") return value.is(Kind::real);
  if (name == "boolean") return value.is(Kind::boolean);
  if (name == "true") return value.is(Kind::boolean) && value.as_boolean();
  if (name == "false") return value.is(Kind::boolean) && !value.as_boolean();
  if (name == "mapping") return value.is(Kind::dict);
  if (name == "sequence")  // Jinja's own definition, which counts strings and dicts
    return value.is(Kind::list) || value.is(Kind::string) || value.is(Kind::dict) ||
           value.is(Kind::undefined);
  if (name == "iterable")
    return value.is(Kind::list) || value.is(Kind::string) || value.is(Kind::dict) ||
           value.is(Kind::undefined);
  if (name == "callable") return value.is(Kind::macro);
  const TemplateValue* other = call.argument(0, "");
  if (other != nullptr) call.meter.charge(other->weight(), call.line);
  if (is_in({"equalto", "eq", "sameas", "ne"}, name) && other != nullptr)
    return (value == *other) == (name != "ne");
  if (name == "in" && other != nullptr) {
    if (value.is(Kind::string) && other->is(Kind::string))
      return other->as_string().find(value.as_string()) != std::string::npos;
    const TemplateList items = items_of(*other, call);
    return std::find(items.begin(), items.end(), value) != items.end();
  }
  if ((name == "odd" || name == "even") && value.is(Kind::integer))
    return (value.as_integer() % 2 != 0) == (name == "odd");
  call.refuse("the test \"", name, "\" is not supported for a value that is ", value.kind_name());
}

TemplateValue call_method(const TemplateCall& call) {
  if (call.value.is(Kind::string)) return string_method(call);
  if (call.value.is(Kind::dict)) return dict_method(call);
  if (call.value.is(Kind::undefined))
    call.refuse("\"", call.value.undefined_name(), "\" is undefined, so it has no method \"", call.name,
                "\"");
  call.refuse("a value that is ", call.value.kind_name(), " has no method \"", call.name, "\"");
}

}  // namespace ropd::text
