#include "text/chat_template.h"

#include "base/error.h"
#include "text/template_interpreter.h"
#include "text/template_parser.h"
#include "text/tokenizer_config.h"

namespace ropd::text {

using Kind = TemplateValue::Kind;

struct ChatTemplate::Compiled {
  std::string text, where, hash;
  StatementList statements;
  TemplateDict special_tokens;  // bos_token, eos_token, ... as far as the model names them
};

namespace {

constexpr uint64_t kMaxTemplateBytes = uint64_t{1} << 20;

Path template_file(const Path& model_directory) { return model_directory / "chat_template.jinja"; }

void check_messages(const TemplateValue& messages) {
  if (!messages.is(Kind::list)) fail("messages are ", messages.kind_name(), " (expected a list)");
  if (messages.as_list().empty()) fail("messages are empty (expected at least one)");
  for (size_t i = 0; i < messages.as_list().size(); ++i) {
    const TemplateValue& message = messages.as_list()[i];
    if (!message.is(Kind::dict)) fail("messages[", i, "] is ", message.kind_name(), " (expected an object)");
    const TemplateValue* role = message.find("role");
    if (role == nullptr || !role->is(Kind::string)) fail("messages[", i, "] has no string \"role\"");
  }
}

TemplateDict special_tokens_of(const TokenizerConfig& config) {
  TemplateDict tokens;
  const auto add = [&](const std::string& name, const std::optional<std::string>& token) {
    if (token) tokens.emplace_back(name, TemplateValue::string(*token));
  };
  add("bos_token", config.bos_token);
  add("eos_token", config.eos_token);
  add("pad_token", config.pad_token);
  add("unk_token", config.unk_token);
  return tokens;
}

}  // namespace

bool ChatTemplate::exists(const Path& model_directory) {
  return std::filesystem::exists(template_file(model_directory)) ||
         read_tokenizer_config(model_directory).chat_template.has_value();
}

ChatTemplate ChatTemplate::load(const Path& model_directory) {
  const TokenizerConfig config = read_tokenizer_config(model_directory);
  auto compiled = std::make_shared<Compiled>();
  if (const Path file = template_file(model_directory); std::filesystem::exists(file)) {
    compiled->text = read_file(file, kMaxTemplateBytes);
    compiled->where = file.string();
  } else if (config.chat_template) {
    compiled->text = *config.chat_template;
    compiled->where = (model_directory / "tokenizer_config.json").string() + ": chat_template";
  } else {
    fail(model_directory.string(),
         ": no chat template (expected chat_template.jinja or \"chat_template\" in tokenizer_config.json; a "
         "base model?)");
  }
  compiled->special_tokens = special_tokens_of(config);
  compiled->statements = parse_template(compiled->text, compiled->where);
  compiled->hash = sha256(compiled->text + TemplateValue::dict(compiled->special_tokens).json());
  return ChatTemplate(std::move(compiled));
}

ChatTemplate ChatTemplate::parse(std::string_view text, const std::string& where) {
  auto compiled = std::make_shared<Compiled>();
  compiled->text = text;
  compiled->where = where;
  compiled->statements = parse_template(text, where);
  compiled->hash = sha256(compiled->text + "{}");
  return ChatTemplate(std::move(compiled));
}

std::string ChatTemplate::render(std::span<const Message> messages, const RenderOptions& options) const {
  TemplateList list;
  for (const Message& message : messages)
    list.push_back(TemplateValue::dict({{"role", TemplateValue::string(message.role)},
                                        {"content", TemplateValue::string(message.content)}}));
  return render(TemplateValue::list(std::move(list)), TemplateValue::none(), options);
}

std::string ChatTemplate::render(const TemplateValue& messages, const TemplateValue& tools,
                                 const RenderOptions& options) const {
  check_messages(messages);
  TemplateDict variables = compiled_->special_tokens;
  variables.emplace_back("messages", messages);
  variables.emplace_back("tools", tools.is(Kind::undefined) ? TemplateValue::none() : tools);
  variables.emplace_back("documents", TemplateValue::none());
  variables.emplace_back("add_generation_prompt", TemplateValue::boolean(options.add_generation_prompt));
  if (options.enable_thinking)
    variables.emplace_back("enable_thinking", TemplateValue::boolean(*options.enable_thinking));
  return run_template(compiled_->statements, std::move(variables), compiled_->where);
}

const std::string& ChatTemplate::hash() const { return compiled_->hash; }

}  // namespace ropd::text
