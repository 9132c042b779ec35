// Any bytes as a chat template: refused with Error, or rendered within the limits, twice the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/template_interpreter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto messages = ropd::text::TemplateValue::from_json(
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": "<tool_response>u"},
          {"role": "assistant", "content": "<think>\nr\n</think>\n\nx", "tool_calls": [{"type": "function", "function":
          {"name": "f", "arguments": {"b": 1, "a": [1.5, null]}}}]}, {"role": "tool", "content": "t"}])",
      "messages");
  static const auto tools =
      ropd::text::TemplateValue::from_json(R"([{"name": "f", "x": {"y": 1}}])", "tools");
  try {
    const auto chat = ropd::text::ChatTemplate::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
    const std::string text = chat.render(messages, tools, {.enable_thinking = false});
    if (text.size() > ropd::text::TemplateLimits::kMaxOutputBytes) std::abort();
    if (chat.render(messages, tools, {.enable_thinking = false}) != text) std::abort();
  } catch (const ropd::Error&) {
  }
  return 0;
}
