// Filters, tests and methods of the chat-template language; behaviour of Python's Jinja. Unknown names are
// refused with the line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/template_value.h"

namespace ropd::text {

// Bounds what one rendering may do, whatever the template says. Every node costs a step, every 16 bytes or
// list item made too.
class TemplateMeter {
 public:
  static constexpr uint64_t kMaxSteps = 4'000'000;
  explicit TemplateMeter(const std::string& where) : where_(where) {}
  void charge(uint64_t steps, int line) {
    if (steps > kMaxSteps - steps_)
      fail(where_, ":", line, ": the template needs more than ", kMaxSteps,
           " steps (endless loop or huge input?)");
    steps_ += steps;
  }
  void charge_bytes(uint64_t bytes, int line) { charge(bytes / 16 + 1, line); }

 private:
  const std::string& where_;
  uint64_t steps_ = 0;
};

struct TemplateCall {
  std::string_view name;
  TemplateValue value;  // what the filter, test or method is applied to
  std::vector<TemplateValue> positional;
  std::vector<std::pair<std::string, TemplateValue>> named;
  int line = 1;
  const std::string& where;
  TemplateMeter& meter;

  // The argument at this place or of this name; null when absent.
  const TemplateValue* argument(size_t index, std::string_view key) const;
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(where, ":", line, ": ", parts...);
  }
};

TemplateValue apply_filter(const TemplateCall& call);
bool apply_test(const TemplateCall& call);
TemplateValue call_method(const TemplateCall& call);
// Methods of dicts hide their keys of the same name behind a dot, as in Python.
bool is_dict_method(std::string_view name);

// Characters of a string as strings; items of a list; keys of a dict. Refused for others.
TemplateList items_of(const TemplateValue& value, const TemplateCall& call);

}  // namespace ropd::text
