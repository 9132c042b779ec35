#include "text/tokenizer_config.h"

#include "base/error.h"
#include "text/template_value.h"

namespace ropd::text {

namespace {

using Kind = TemplateValue::Kind;

// A token is a string, or an object with "content" (older files), or null.
std::optional<std::string> token_of(const TemplateValue& config, const std::string& key,
                                    const std::string& where) {
  const TemplateValue* value = config.find(key);
  if (value == nullptr || value->is(Kind::none)) return std::nullopt;
  if (value->is(Kind::dict)) value = value->find("content");
  if (value == nullptr || !value->is(Kind::string))
    fail(where, ": \"", key, "\" must be a string or an object with a string \"content\"");
  return value->as_string();
}

std::optional<std::string> template_of(const TemplateValue& config, const std::string& where) {
  const TemplateValue* value = config.find("chat_template");
  if (value == nullptr || value->is(Kind::none)) return std::nullopt;
  if (value->is(Kind::string)) return value->as_string();
  if (value->is(Kind::list)) {
    for (const TemplateValue& entry : value->as_list()) {
      if (!entry.is(Kind::dict)) continue;
      const TemplateValue* name = entry.find("name");
      const TemplateValue* text = entry.find("template");
      if (name != nullptr && text != nullptr && text->is(Kind::string) &&
          *name == TemplateValue::string("default"))
        return text->as_string();
    }
    fail(where, ": \"chat_template\" is a list without a template named \"default\"");
  }
  fail(where, ": \"chat_template\" is ", value->kind_name(),
       " (expected a string or a list of named templates)");
}

}  // namespace

TokenizerConfig read_tokenizer_config(const Path& model_directory) {
  const Path path = model_directory / "tokenizer_config.json";
  TokenizerConfig result;
  if (!std::filesystem::exists(path)) return result;
  constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
  const std::string where = path.string();
  const TemplateValue config = TemplateValue::from_json(read_file(path, kMaxBytes), where);
  if (!config.is(Kind::dict)) fail(where, ": the file holds ", config.kind_name(), " (expected an object)");
  result.bos_token = token_of(config, "bos_token", where);
  result.eos_token = token_of(config, "eos_token", where);
  result.pad_token = token_of(config, "pad_token", where);
  result.unk_token = token_of(config, "unk_token", where);
  result.chat_template = template_of(config, where);
  return result;
}

}  // namespace ropd::text
