// Values of the chat-template language (Jinja): what a template computes with. Printing and JSON follow
// Python, because the official templates are written against Python's Jinja: True/None, repr of lists,
// json.dumps with ", " and ": ".
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ropd::text {

struct MacroStatement;
class TemplateValue;
using TemplateList = std::vector<TemplateValue>;
// Keys in order of insertion; templates hold small objects, so look-up is a scan.
using TemplateDict = std::vector<std::pair<std::string, TemplateValue>>;

// Lists and dicts are shared and never change; only a namespace can be assigned to. Depth and weight are
// bounded, so walking a value is too, also where parts are shared many times over. Copies are cheap. Not
// thread-safe where a namespace is shared.
class TemplateValue {
 public:
  enum class Kind { undefined, none, boolean, integer, real, string, list, dict, name_space, macro };
  static constexpr int kMaxDepth = 100;
  static constexpr uint64_t kMaxWeight = uint64_t{1} << 23;

  TemplateValue() = default;                         // undefined
  static TemplateValue undefined(std::string name);  // the name is for error texts
  static TemplateValue none();
  static TemplateValue boolean(bool value);
  static TemplateValue integer(int64_t value);
  static TemplateValue real(double value);
  static TemplateValue string(std::string value);
  static TemplateValue list(TemplateList items);  // fails when nested too deep
  static TemplateValue dict(TemplateDict entries);
  static TemplateValue name_space(TemplateDict entries);
  static TemplateValue macro(const MacroStatement* statement);
  // JSON text with the order of keys kept. `where` begins every error text.
  static TemplateValue from_json(std::string_view json, const std::string& where);

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is(Kind kind_wanted) const { return kind() == kind_wanted; }
  bool is_number() const { return is(Kind::integer) || is(Kind::real) || is(Kind::boolean); }
  std::string_view kind_name() const;
  bool is_true() const;     // as `if` sees it
  uint64_t weight() const;  // the cost of walking it: one per value and per 16 bytes

  // Each may be called only on its kind.
  const std::string& undefined_name() const { return std::get<Undefined>(value_).name; }
  bool as_boolean() const { return std::get<bool>(value_); }
  int64_t as_integer() const;  // booleans count as 0 and 1
  double as_real() const;      // any number
  const std::string& as_string() const { return *std::get<std::shared_ptr<const std::string>>(value_); }
  const TemplateList& as_list() const {
    return std::get<std::shared_ptr<const Nested<TemplateList>>>(value_)->items;
  }
  const TemplateDict& as_dict() const;  // of a dict or a namespace
  const MacroStatement* as_macro() const { return std::get<const MacroStatement*>(value_); }

  const TemplateValue* find(std::string_view key) const;  // of a dict or a namespace; null when absent
  void assign(const std::string& key, TemplateValue value) const;  // of a namespace

  bool operator==(const TemplateValue& other) const;
  std::string text() const;                 // str() of Python; undefined gives ""
  std::string json(int indent = -1) const;  // json.dumps(ensure_ascii=False); indent < 0 = one line

 private:
  struct Undefined {
    std::string name;
  };
  struct None {};
  template <class Items>
  struct Nested {
    Items items;
    int depth = 1;
    uint64_t weight = 1;
  };
  struct Namespace {
    TemplateDict entries;
  };
  int depth() const;
  void append_repr(std::string& result) const;
  void append_json(std::string& result, int indent, int level) const;

  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const Nested<TemplateList>>, std::shared_ptr<const Nested<TemplateDict>>,
               std::shared_ptr<Namespace>, const MacroStatement*>
      value_;
};

}  // namespace ropd::text
