// ropd tokenize: texts or messages to token ids, line by line.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "io/adapter_directory.h"
#include "io/jsonl.h"
#include "text/chat_template.h"
#include "text/template_value.h"
#include "text/tokenizer.h"

namespace ropd::app {
namespace {

using text::TemplateValue;
using Kind = TemplateValue::Kind;

constexpr const char* kTokenizeExamples =
    R"(Input: JSON lines with "text" or "messages" (and "tools"). Output: the same lines with "ids" added or replaced.
With --chat "messages" come first and are rendered with the generation prompt; without it "text" comes first and "messages" are
rendered as a finished conversation. "add_generation_prompt" and "enable_thinking" of a line go before the options' defaults.
Examples:
  ropd tokenize --model models/Qwen3-0.6B --in texts.jsonl --out ids.jsonl
  ropd tokenize --model models/Qwen3-0.6B --chat --no-thinking --in chats.jsonl --out ids.jsonl)";

struct TokenizeOptions {
  std::string model, base, in;
  Output out;
  bool is_chat = false, is_without_thinking = false;
};

// One input line on its way to the output.
struct Row {
  std::string_view line;
  uint64_t number = 0;
  std::string result;
  size_t num_tokens = 0;
  std::string failure;
};

std::optional<bool> flag_of(const TemplateValue& row, std::string_view key) {
  const TemplateValue* value = row.find(key);
  if (value == nullptr || value->is(Kind::none)) return std::nullopt;
  if (!value->is(Kind::boolean)) fail("\"", key, "\" is ", value->kind_name(), " (expected true or false)");
  return value->as_boolean();
}

// Turns lines into ids; constant, shared by all threads.
class LineTokenizer {
 public:
  explicit LineTokenizer(const TokenizeOptions& options)
      : options_(options),
        tokenizer_(text::Tokenizer::load(io::text_directory(options.model, options.base))) {
    const Path directory = io::text_directory(options.model, options.base);
    if (options.is_chat || text::ChatTemplate::exists(directory))
      template_.emplace(text::ChatTemplate::load(directory));
  }

  void run(Row& row, const std::string& where) const {
    const TemplateValue object = TemplateValue::from_json(row.line, where);
    if (!object.is(Kind::dict)) fail(where, ": the line is ", object.kind_name(), " (expected an object)");
    const auto ids = tokenizer_.encode(text_of(object));
    row.num_tokens = ids.size();
    std::string list;
    for (const Token id : ids) list.append(list.empty() ? "" : ", ").append(std::to_string(id));
    row.result = with_ids(object, row.line, "[" + list + "]");
  }

 private:
  std::string text_of(const TemplateValue& object) const {
    const TemplateValue* text = object.find("text");
    const TemplateValue* messages = object.find("messages");
    if (messages != nullptr && (options_.is_chat || text == nullptr)) return rendered(object, *messages);
    if (text == nullptr) fail("the line has neither \"text\" nor \"messages\"");
    if (!text->is(Kind::string)) fail("\"text\" is ", text->kind_name(), " (expected a string)");
    return text->as_string();
  }

  std::string rendered(const TemplateValue& object, const TemplateValue& messages) const {
    if (!template_) fail("\"messages\" need a chat template, and ", options_.model, " has none");
    const TemplateValue* tools = object.find("tools");
    text::RenderOptions render;
    render.add_generation_prompt = flag_of(object, "add_generation_prompt").value_or(options_.is_chat);
    render.enable_thinking = options_.is_without_thinking ? false : flag_of(object, "enable_thinking");
    return template_->render(messages, tools != nullptr ? *tools : TemplateValue::none(), render);
  }

  // The line as it was with "ids" behind its fields; only a line that has "ids" already is written anew.
  static std::string with_ids(const TemplateValue& object, std::string_view line, const std::string& ids) {
    std::string result;
    if (object.find("ids") == nullptr) {
      result = line.substr(0, line.rfind('}'));
      while (!result.empty() && (result.back() == ' ' || result.back() == '\t')) result.pop_back();
    } else {
      text::TemplateDict entries;
      for (const auto& entry : object.as_dict())
        if (entry.first != "ids") entries.push_back(entry);
      result = TemplateValue::dict(std::move(entries)).json();
      result.pop_back();
    }
    return result + (result.ends_with('{') ? "" : ", ") + "\"ids\": " + ids + "}\n";
  }

  const TokenizeOptions& options_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> template_;
};

void run_batch(std::vector<Row>& batch, const LineTokenizer& lines, const io::JsonlReader& reader) {
  parallel_tasks(batch.size(), [&](size_t i, size_t) {
    try {
      lines.run(batch[i], reader.where(batch[i].number));
    } catch (const Error& error) {
      batch[i].failure = error.what();
    }
  });
  for (const Row& row : batch) {
    const std::string where = reader.where(row.number);
    if (row.failure.starts_with(where)) fail(row.failure);
    if (!row.failure.empty()) fail(where, ": ", row.failure);
  }
}

void run_tokenize(const CLI::App& command, const TokenizeOptions& options) {
  constexpr size_t kBatchLines = 512;
  const LineTokenizer lines(options);
  io::JsonlReader reader(options.in);
  AtomicFile out(options.out.path);
  Progress progress("bytes tokenized", reader.size(), "tok");
  uint64_t num_lines = 0, num_tokens = 0;
  std::vector<Row> batch;
  for (bool is_open = true; is_open;) {
    batch.clear();
    while (batch.size() < kBatchLines && is_open) {
      const auto line = reader.next();
      if (line) batch.push_back({line->text, line->number, "", 0, ""});
      is_open = line.has_value();
    }
    run_batch(batch, lines, reader);
    for (const Row& row : batch) {
      out.write(std::string_view(row.result));
      num_tokens += row.num_tokens;
    }
    num_lines += batch.size();
    progress.update(reader.position(), num_tokens);
  }
  progress.finish();
  out.commit();
  if (options.out.is_standard()) return;
  if (wants_json(command))
    print_json({{"in", options.in}, {"out", options.out.path}, {"lines", num_lines}, {"tokens", num_tokens}});
  else
    log_info(options.out.path, ": ", format_count(double(num_lines)), " lines, ",
             format_count(double(num_tokens)), " tokens");
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto* command = app.add_subcommand("tokenize", "turn texts or messages into token ids");
  auto options = std::make_shared<TokenizeOptions>();
  command->footer(kTokenizeExamples);
  command
      ->add_option("--model", options->model,
                   "model or adapter directory with tokenizer.json, checkpoint or run")
      ->required()
      ->transform(to_model());
  add_base(*command, "--base", options->base);
  command->add_flag("--chat", options->is_chat, "render \"messages\" with the generation prompt");
  command->add_flag("--no-thinking", options->is_without_thinking,
                    "pass enable_thinking=false to the template");
  command->add_option("--in", options->in, "JSONL file with \"text\" or \"messages\"; - is standard input")
      ->required()
      ->transform(or_standard_input());
  add_output(*command, options->out, "JSONL file to write")->required();
  command->callback([command, options] {
    check_output(options->out, {options->in});
    run_tokenize(*command, *options);
  });
}

}  // namespace ropd::app
