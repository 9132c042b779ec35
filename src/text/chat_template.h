// The chat template of a model directory: messages -> the text the model was trained to read.
// Its text: chat_template.jinja if it is there, otherwise "chat_template" of tokenizer_config.json. The
// language is the Jinja subset of template_parser.h; the clock is not given to templates, so rendering is a
// pure function.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "records/query.h"
#include "text/template_value.h"

namespace ropd::text {

struct RenderOptions {
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;  // not told to the template when absent
};

// Constant after loading; render is thread-safe. Copies share the parsed template.
class ChatTemplate {
 public:
  // Fails where the directory has no template.
  static ChatTemplate load(const Path& model_directory);
  static bool exists(const Path& model_directory);
  // A template given as text; `where` begins every error text.
  static ChatTemplate parse(std::string_view text, const std::string& where);

  [[nodiscard]] std::string render(std::span<const Message> messages,
                                   const RenderOptions& options = {}) const;
  // Messages with any fields (tool_calls, reasoning_content, ...): a list of dicts, e.g.
  // TemplateValue::from_json. `tools` may be none or undefined. Fails when a role is missing; everything else
  // is up to the template.
  [[nodiscard]] std::string render(const TemplateValue& messages, const TemplateValue& tools,
                                   const RenderOptions& options = {}) const;
  // SHA-256 of the template text and the special tokens it is given: equal hash, equal rendering.
  [[nodiscard]] const std::string& hash() const;

 private:
  struct Compiled;
  explicit ChatTemplate(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace ropd::text
