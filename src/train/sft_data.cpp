// Files of prompt/response pairs as a stream of examples for supervised fine-tuning.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "io/hf_config.h"
#include "io/jsonl.h"
#include "text/prompt_renderer.h"
#include "train/sft.h"

namespace ropd::train {
namespace {

std::vector<Token> ids_of(const Json& value, int64_t vocab_size, const std::string& where) {
  if (!value.is_array()) fail(where, ": expected a list of ids, got ", value.type_name());
  std::vector<Token> ids;
  for (const Json& id : value) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= vocab_size)
      fail(where, ": id ", id.dump(), " is outside the vocabulary of ", vocab_size);
    ids.push_back(id.get<Token>());
  }
  return ids;
}

// One row; the renderer is absent when the model has no tokenizer.
SftExample read_example(const Json& row, const std::string& where, int64_t vocab_size,
                        const std::vector<Token>& eos_ids,
                        const std::optional<text::PromptRenderer>& renderer) {
  SftExample example;
  const auto needs_text = [&](const char* field) {
    if (!renderer)
      fail(where, ": '", field,
           "' is text, but the model has no tokenizer (give prompt_ids and response_ids)");
  };
  if (row.contains("prompt_ids")) {
    example.prompt_ids = ids_of(row["prompt_ids"], vocab_size, where);
  } else {
    Query query{where, {}, ""};
    if (row.contains("messages")) {
      needs_text("messages");
      for (const Json& message : row["messages"]) {
        if (!message.is_object() || !message.contains("role") || !message["role"].is_string() ||
            !message.contains("content") || !message["content"].is_string())
          fail(where, ": messages are {role, content}, got ", message.dump().substr(0, 60));
        query.messages.push_back({message["role"].get<std::string>(), message["content"].get<std::string>()});
      }
    } else {
      const char* name = row.contains("prompt") ? "prompt" : row.contains("problem") ? "problem" : "question";
      if (!row.contains(name) || !row[name].is_string())
        fail(where, ": no prompt, problem, question, messages or prompt_ids");
      needs_text(name);
      query.messages.push_back({"user", row[name].get<std::string>()});
    }
    example.prompt_ids = renderer->render(query);
  }
  if (row.contains("response_ids")) {
    example.response_ids = ids_of(row["response_ids"], vocab_size, where);
  } else {
    const char* name = row.contains("response") ? "response" : "solution";
    if (!row.contains(name) || !row[name].is_string()) fail(where, ": no response, solution or response_ids");
    needs_text(name);
    example.response_ids = renderer->tokenizer().encode(row[name].get<std::string>());
    if (!eos_ids.empty()) example.response_ids.push_back(eos_ids.front());
  }
  example.loss_weights.assign(example.response_ids.size(), 1.0f);
  if (row.contains("loss_weights")) {
    const Json& weights = row["loss_weights"];
    if (!weights.is_array() || weights.size() != example.response_ids.size())
      fail(where, ": ", weights.size(), " loss_weights for ", example.response_ids.size(),
           " response tokens");
    for (size_t t = 0; t < weights.size(); ++t) {
      if (!weights[t].is_number() || !(weights[t].get<double>() >= 0))
        fail(where, ": loss_weights[", t, "] is ", weights[t].dump(), ", expected a number >= 0");
      example.loss_weights[t] = weights[t].get<float>();
    }
  }
  if (example.prompt_ids.empty() || example.response_ids.empty())
    fail(where, ": prompt or response is empty");
  return example;
}

}  // namespace

SftData load_sft_data(const SftConfig& config) {
  const Path directory = io::base_of(config.model, config.base),
             text = io::text_directory(config.model, config.base);
  const ModelConfig shape =
      io::parse_model_config(read_file(directory / "config.json"), (directory / "config.json").string());
  const Path generation_path = directory / "generation_config.json";
  const auto generation = io::parse_generation_config(
      std::filesystem::exists(generation_path) ? read_file(generation_path) : "", generation_path.string(),
      read_file(directory / "config.json"), (directory / "config.json").string());
  std::optional<text::PromptRenderer> renderer;
  if (std::filesystem::exists(text / "tokenizer.json") && text::ChatTemplate::exists(text))
    renderer =
        text::PromptRenderer::load(text, {config.prompt_prefix, config.prompt_suffix, config.thinking});

  auto examples = std::make_shared<std::vector<SftExample>>();
  SftData data;
  uint64_t tokens = 0;
  io::JsonlReader reader{Path(config.data)};
  io::for_each_json_row(reader, [&](Json&& row, const std::string& where) {
    SftExample example = read_example(row, where, shape.vocab_size, generation.eos_ids, renderer);
    const uint64_t length = example.prompt_ids.size() + example.response_ids.size();
    if (length > config.max_tokens || length > static_cast<uint64_t>(shape.max_position_embeddings)) {
      ++data.num_too_long;
      return;
    }
    tokens += length;
    examples->push_back(std::move(example));
  });
  if (data.num_too_long > 0)
    log_info(config.data, ": ", data.num_too_long, " examples longer than ", config.max_tokens,
             " tokens dropped");
  if (examples->empty()) fail(config.data, ": no example is left");
  data.num_examples = examples->size();
  data.steps =
      config.steps > 0 ? config.steps : std::max<uint64_t>(1, config.epochs * tokens / config.batch_tokens);
  // The order of the last epoch asked for; recomputed when the stream moves on, so that any index can be
  // asked for again.
  auto order =
      std::make_shared<std::pair<uint64_t, std::vector<uint32_t>>>(UINT64_MAX, std::vector<uint32_t>{});
  data.examples = [examples, order, seed = config.seed](uint64_t index, double) {
    const uint64_t epoch = index / examples->size();
    if (order->first != epoch)
      *order = {epoch, random_permutation(static_cast<uint32_t>(examples->size()), seed, Purpose::data_order,
                                          epoch)};
    return (*examples)[order->second[index % examples->size()]];
  };
  return data;
}

}  // namespace ropd::train
