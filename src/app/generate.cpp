// ropd generate: responses of a model to a file of prompts.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/error.h"
#include "base/json.h"
#include "base/line_stream.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/visible_text.h"
#include "io/files_in_use.h"
#include "io/jsonl.h"
#include "io/model_directory.h"
#include "rollout/bank.h"
#include "rollout/crew_generator.h"
#include "rollout/fingerprint.h"
#include "rollout/local_generator.h"
#include "rollout/row_stream.h"
#include "text/chat_template.h"
#include "text/prompt_renderer.h"
#include "text/streaming_decoder.h"
#include "text/tokenizer.h"
#include "train/train_config.h"

namespace ropd::app {
namespace {

constexpr const char* kExamples =
    R"(Prompts: JSON lines with "messages", "prompt" (one user turn) or "prompt_ids", or a query set ("problem", "question");
"query_id" or "id" (default: the number of the line, from 0) and "answer" are passed on. Output: one line a response
(docs/formats.md). An interrupted command goes on where it was when it is called again with the same arguments.
Examples:
  ropd generate --model models/Qwen3-0.6B --prompts questions.jsonl --n 4 --max-tokens 512 --out responses.jsonl
  ropd generate --model models/Qwen3-0.6B --prompts questions.jsonl --greedy --no-thinking --stream --out responses.jsonl
  ropd generate --model models/Qwen3-0.6B --prompts questions.jsonl --out - | ropd grade --in - --out graded.jsonl)";

struct GenerateOptions {
  std::string model, base, prompts, purpose, recipe;
  Output out;  // --overwrite: samples anew what was made in another way
  uint32_t n = 1;
  int64_t max_tokens = 512;
  rollout::SamplingConfig sampling;
  uint64_t seed = 1;
  std::string precision = "bf16";
  std::string memory_gb = "auto";
  bool with_logprobs = false, is_without_thinking = false, streams = false;
};

// Tokenizer and chat template of a model directory; both may be absent where only ids are used.
struct TokenizerAndTemplate {
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;
};

TokenizerAndTemplate load_tokenizer_and_template(const Path& model) {
  TokenizerAndTemplate text;
  if (std::filesystem::exists(model / "tokenizer.json")) text.tokenizer.emplace(text::Tokenizer::load(model));
  if (text::ChatTemplate::exists(model)) text.chat_template.emplace(text::ChatTemplate::load(model));
  return text;
}

// Reads prompt rows; every message begins with file:line.
class PromptReader {
 public:
  PromptReader(const GenerateOptions& options, const TokenizerAndTemplate& text)
      : options_(options), text_(text) {
    if (options.recipe.empty()) return;
    const auto recipe = train::load_train_config(options.recipe);
    renderer_.emplace(text::PromptRenderer::load(
        io::text_directory(options.model, options.base),
        {recipe.data.prompt_prefix, recipe.data.prompt_suffix, recipe.data.thinking}));
  }

  std::vector<rollout::PromptedQuery> read() const {
    std::vector<rollout::PromptedQuery> queries;
    std::unordered_map<std::string, std::string> place_of;
    io::JsonlReader reader(options_.prompts);
    io::for_each_json_row(reader, [&](Json&& row, const std::string& where) {
      rollout::PromptedQuery query;
      query.query_id = id_of(row, std::to_string(queries.size()), where);
      query.prompt = prompt_of(row, where);
      query.answer = answer_of(row, where);
      if (query.prompt.empty()) fail(where, ": the prompt is empty; at least one token is needed");
      const auto [place, is_new] = place_of.emplace(query.query_id, where);
      if (!is_new) fail(where, ": query_id \"", query.query_id, "\" is also in ", place->second);
      queries.push_back(std::move(query));
    });
    if (queries.empty()) fail(options_.prompts, ": holds no prompts");
    return queries;
  }

 private:
  const GenerateOptions& options_;
  const TokenizerAndTemplate& text_;
  std::optional<text::PromptRenderer> renderer_;  // of the recipe

  static std::string id_of(const Json& row, std::string otherwise, const std::string& where) {
    for (const char* name : {"query_id", "id"}) {
      const auto found = row.find(name);
      if (found == row.end()) continue;
      if (found->is_string()) return *found;
      if (found->is_number_unsigned()) return std::to_string(found->get<uint64_t>());
      fail(where, ": ", name, " is neither a text nor a whole number");
    }
    return otherwise;
  }

  static std::string answer_of(const Json& row, const std::string& where) {
    const auto found = row.find("answer");
    if (found == row.end() || found->is_null()) return "";
    if (found->is_number()) return found->dump();
    if (!found->is_string()) fail(where, ": answer is not a text");
    return *found;
  }

  std::vector<Token> prompt_of(const Json& row, const std::string& where) const {
    std::string kinds;
    int num_kinds = 0;
    for (const char* name : {"messages", "prompt", "prompt_ids"})
      if (row.contains(name)) kinds += (num_kinds++ ? ", " : "") + std::string(name);
    for (const char* name : {"problem", "question"})  // a query set
      if (num_kinds == 0 && row.contains(name)) kinds = name, num_kinds = 1;
    if (num_kinds != 1)
      fail(where, ": has ", num_kinds == 0 ? "no prompt" : kinds,
           ", expected one of messages, prompt, prompt_ids, or problem or question of a query set");
    if (row.contains("prompt_ids")) return ids_of(row["prompt_ids"], where);
    if (!text_.tokenizer)
      fail(options_.model, ": has no tokenizer.json, so ", where, " must give prompt_ids instead of ", kinds);
    if (!text_.chat_template)
      fail(options_.model, ": has no chat template, so ", where, " must give prompt_ids instead of ", kinds);
    if (!options_.recipe.empty()) return as_in_training(row, kinds, where);
    text::RenderOptions render;
    if (options_.is_without_thinking) render.enable_thinking = false;
    const bool is_chat = kinds == "messages";
    if (!is_chat && !row[kinds].is_string()) fail(where, ": ", kinds, " is not a text");
    Json messages = is_chat ? row["messages"] : Json::array({{{"role", "user"}, {"content", row[kinds]}}});
    if (!messages.is_array() || messages.empty())
      fail(where, ": messages is not a list of at least one message");
    const auto value = text::TemplateValue::from_json(messages.dump(), where);
    return text_.tokenizer->encode(text_.chat_template->render(value, text::TemplateValue::none(), render));
  }

  // The training prompt of a recipe, so that responses made here begin in states that training sees.
  std::vector<Token> as_in_training(const Json& row, const std::string& kind,
                                    const std::string& where) const {
    if (!row[kind].is_string())
      fail(where, ": ", kind, " is not a text (with --recipe prompts are questions)");
    return renderer_->render({.id = where, .messages = {{"user", row[kind]}}});
  }

  static std::vector<Token> ids_of(const Json& list, const std::string& where) {
    if (!list.is_array()) fail(where, ": prompt_ids is not a list");
    std::vector<Token> ids;
    for (const Json& item : list) {
      if (!item.is_number_integer() || item < 0 || item > INT32_MAX)
        fail(where, ": prompt_ids[", ids.size(), "] is ", item.dump().substr(0, 40), ", expected a token id");
      ids.push_back(item.get<Token>());
    }
    return ids;
  }
};

// Shows the response that speaks first, and only that one, as it grows.
class LiveResponse {
 public:
  explicit LiveResponse(const TokenizerAndTemplate& text) {
    if (text.tokenizer) decoder_.emplace(*text.tokenizer);
  }
  void push(size_t request, Token token) {
    if (!request_) request_ = request;
    if (request != *request_) return;
    write(decoder_ ? decoder_->push(token) : std::to_string(token) + " ");
  }
  void finish() {
    if (decoder_) write(decoder_->finish());
    if (request_) write("\n");
  }

 private:
  std::optional<text::StreamingDecoder> decoder_;
  std::optional<size_t> request_;
  static void write(const std::string& text) {
    std::fputs(visible_text(text).c_str(), stdout);
    std::fflush(stdout);
  }
};

rollout::EngineConfig engine_config(const GenerateOptions& options, const GenerationConfig& generation) {
  rollout::EngineConfig config;
  config.max_response_tokens = options.max_tokens;
  config.eos_ids = generation.eos_ids;
  config.sampling = options.sampling;
  config.with_logprobs = options.with_logprobs;
  if (options.memory_gb != "auto")
    config.memory_bytes = static_cast<uint64_t>(std::stod(options.memory_gb) * 1e9);
  return config;
}

// Every response that is asked for has its entry in memory; more than fit are refused at once, not after
// minutes.
void check_count(const GenerateOptions& options, size_t num_prompts) {
  constexpr double kBytesPerResponse = 600;  // request, key, place in the file
  const double count = static_cast<double>(options.n) * static_cast<double>(num_prompts);
  const auto free_bytes = static_cast<double>(usable_bytes(read_memory_info()));
  if (count * kBytesPerResponse > free_bytes)
    fail("--n ", options.n, " for ", num_prompts, " prompts: ", format_count(count), " responses need ",
         format_bytes(count * kBytesPerResponse), " of memory before the first is sampled, ",
         format_bytes(free_bytes), " are free; ask for fewer at a time");
}

// A bank is more files than --out names.
void check_outputs(const GenerateOptions& options, const std::vector<io::InputFile>& model) {
  std::vector<std::string> inputs = {options.prompts, options.recipe};
  for (const io::InputFile& file : model) inputs.push_back(file.path.string());
  const Path out = options.out.path;
  for (const Path& output : {out, io::bank_meta_path(out), io::bank_partial_path(out)})
    refuse_inputs(output.string(), inputs);
}

RandomStream stream_of(const GenerateOptions& options) {
  return {options.seed, options.purpose.empty() ? "generate" : "generate " + options.purpose};
}

void print_summary(const GenerateOptions& options, const rollout::BankResult& result, size_t num_responses) {
  const auto& run = result.run;
  const double rate = run.seconds > 0 ? static_cast<double>(run.num_tokens) / run.seconds : 0;
  const nlohmann::ordered_json summary = {{"out", options.out.path},
                                          {"responses", num_responses},
                                          {"kept", result.num_kept},
                                          {"sampled", run.num_done},
                                          {"tokens", run.num_tokens},
                                          {"at_limit", run.num_at_limit},
                                          {"preemptions", run.num_preemptions},
                                          {"guesses", run.num_guesses},
                                          {"right_guesses", run.num_right_guesses},
                                          {"seconds", run.seconds},
                                          {"tokens_per_second", rate}};
  std::printf("%s\n", summary.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

// Rows to whoever reads them, as they come: nothing to go on with.
void generate_to_stream(const GenerateOptions& options, rollout::Generator& engine,
                        std::span<const rollout::Request> requests, const rollout::BankOptions& bank) {
  LineStream out(options.out.path);
  const auto run = rollout::stream_rows(
      engine, requests, [&](std::string_view row) { out.write(row); }, bank);
  if (run.was_stopped)
    end_stopped(options.out.path + ": stopped with " + std::to_string(run.num_done) + " of " +
                std::to_string(requests.size()) + " responses; the same command begins again");
}

void generate(const GenerateOptions& options, bool as_json) {
  if (options.streams && options.out.is_standard())
    throw CLI::ValidationError("--stream shows a response where --out - writes all: expected one of them");
  install_stop_handlers();
  comm::Crew& crew = join_crew();
  std::shared_ptr<const io::ModelDirectory> directory;
  TokenizerAndTemplate text;
  io::FilesInUse files;                         // the leader's
  std::vector<rollout::PromptedQuery> queries;  // the leader's
  leader_first(crew, [&] {
    directory = std::make_shared<const io::ModelDirectory>(options.model, options.base);
    text = load_tokenizer_and_template(directory->text_path());
    if (!crew.leads()) return;
    const auto model = io::model_files(options.model, options.base);
    check_outputs(options, model);
    files.add(model);
    queries = PromptReader(options, text).read();
    check_count(options, queries.size());
  });
  if (crew.leads() && directory->generation().eos_ids.empty())
    log_warning(options.model, ": names no end-of-sequence id; every response runs to the limit");
  const model::Weights weights = model::map_weights(directory);
  model::check_finite(weights, options.model);
  rollout::LocalGenerator engine(weights, kernels::precision_named(options.precision),
                                 engine_config(options, directory->generation()));
  const std::string fingerprint = rollout::weights_fingerprint(weights);
  rollout::CrewGenerator generator(engine, crew);
  require_same_sampling(crew, options.precision, fingerprint, engine.config());
  if (!crew.leads()) assist(crew);
  mention_tiles({{"--precision ", engine.precision()}});
  crew.expect_service();
  const auto requests = rollout::make_requests(queries, 0, options.n, stream_of(options));
  generator.check(requests);
  rollout::BankOptions bank;
  bank.stage = "generate";
  bank.check = [&] { files.check(); };
  if (text.tokenizer) bank.decode = [&](std::span<const Token> ids) { return text.tokenizer->decode(ids); };
  if (is_stream(options.out.path)) return generate_to_stream(options, generator, requests, bank);
  if (options.out.overwrites) io::remove_bank(options.out.path);
  LiveResponse live(text);
  if (options.streams) {
    set_progress_mode(ProgressMode::quiet);
    bank.on_token = [&](size_t request, Token token) { live.push(request, token); };
  }
  const auto result =
      rollout::make_bank(generator, requests, options.out.path, {options.model, fingerprint}, bank);
  if (options.streams) live.finish();
  if (!result.is_finished)
    end_stopped(options.out.path + ": stopped with " + std::to_string(result.num_kept + result.run.num_done) +
                " of " + std::to_string(requests.size()) + " responses; the same command goes on from here");
  if (as_json) print_summary(options, result, requests.size());
}

}  // namespace

void add_generate(CLI::App& app) {
  auto* command = app.add_subcommand("generate", "responses of a model to a file of prompts");
  auto options = std::make_shared<GenerateOptions>();
  command->add_option("--model", options->model, "model or adapter directory, checkpoint or run")
      ->required()
      ->transform(to_model());
  add_base(*command, "--base", options->base);
  command
      ->add_option("--prompts", options->prompts,
                   "JSON lines with messages, prompt or prompt_ids, or a query set; - is standard input")
      ->required()
      ->transform(or_standard_input());
  add_output(*command, options->out, "responses, JSON lines")->required();
  command->add_option("--n", options->n, "responses to each prompt")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--max-tokens", options->max_tokens, "longest response")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
  command->add_option("--temperature", options->sampling.temperature, "of the softmax")
      ->check(number_in("a number between 1e-6 and 1e6 (for the likeliest token use --greedy)",
                        [](double x) { return x >= 1e-6 && x <= 1e6; }))
      ->capture_default_str();
  command
      ->add_option("--top-p", options->sampling.top_p, "draw from the likeliest tokens of this probability")
      ->check(number_in("a number in (0, 1]", [](double x) { return x > 0 && x <= 1; }))
      ->capture_default_str();
  command->add_option("--top-k", options->sampling.top_k, "draw from the k likeliest tokens; 0 = all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31))
      ->capture_default_str();
  command->add_flag("--greedy", options->sampling.greedy, "always the likeliest token");
  command->add_option("--seed", options->seed, "of all draws")->check(is_seed())->capture_default_str();
  command->add_option("--purpose", options->purpose,
                      "what the responses are for: another name, other draws (never those of training)");
  command->add_option("--precision", options->precision, "of matrix products")
      ->check(is_precision())
      ->capture_default_str();
  command->add_option("--memory-gb", options->memory_gb, "for keys and values; auto = what is free")
      ->check(CLI::Validator(
          [is_right = number_in("auto or a number above 0 and below 1e6",
                                [](double x) { return x > 0 && x < 1e6; })](const std::string& text) {
            return text == "auto" ? std::string() : is_right(text);
          },
          ""))
      ->capture_default_str();
  command->add_flag("--logprobs", options->with_logprobs, "add the log-probability of every sampled token");
  command
      ->add_option("--recipe", options->recipe,
                   "render questions as this configuration of ropd train does: prefix, suffix, thinking")
      ->check(CLI::ExistingFile);
  command->add_flag("--no-thinking", options->is_without_thinking,
                    "tell the chat template enable_thinking=false");
  command->add_flag("--stream", options->streams, "show one response on the terminal as it grows");
  command->footer(kExamples);
  command->callback([options, command] { generate(*options, wants_json(*command)); });
}

}  // namespace ropd::app
