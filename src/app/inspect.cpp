// ropd inspect DIR: what a folder (or bank file) holds. Each kind of folder has one recogniser in the list
// below; the first that recognises the folder describes it as an ordered JSON object, which is printed as it
// is (--json) or as lines for people.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "base/config_fields.h"
#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/visible_text.h"
#include "io/checkpoint.h"
#include "io/jsonl.h"
#include "io/metrics_file.h"
#include "io/model_directory.h"
#include "io/model_path.h"
#include "io/rollout_file.h"
#include "train/sft_run.h"

namespace ropd::app {
namespace {

using Description = nlohmann::ordered_json;

struct Recogniser {
  const char* kind;
  bool (*recognises)(const Path&);
  Description (*describe)(const Path& path, const Path& base);  // base: of an adapter, or empty
};

constexpr uint64_t kMaxTokenizerBytes = 500'000'000;

Description describe_tokenizer(const Path& directory) {
  const Path path = directory / "tokenizer.json";
  if (!std::filesystem::exists(path)) return "none (no tokenizer.json)";
  const Json tokenizer = parse_json(read_file(path, kMaxTokenizerBytes), path.string());
  if (!tokenizer.is_object())
    fail(path.string(), ": is of type ", tokenizer.type_name(), ", expected an object (not a tokenizer?)");
  const auto part = [](const Json& object, const char* name) -> const Json& {
    static const Json nothing;
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found == object.end() ? nothing : *found;
  };
  const auto size_of = [](const Json& list) { return list.is_structured() ? list.size() : 0; };
  const Json& model = part(tokenizer, "model");
  const Json& type = part(model, "type");
  Description description = Description::object();
  description["type"] = type.is_string() ? type.get<std::string>() : "?";
  description["entries"] = size_of(part(model, "vocab"));
  description["merges"] = size_of(part(model, "merges"));
  description["added_tokens"] = size_of(part(tokenizer, "added_tokens"));
  description["sha256"] = sha256_file(path);
  return description;
}

// The chat template stands in its own file or inside tokenizer_config.json.
Description describe_template(const Path& directory) {
  const Path own = directory / "chat_template.jinja", config = directory / "tokenizer_config.json";
  if (std::filesystem::exists(own)) return {{"file", "chat_template.jinja"}, {"sha256", sha256_file(own)}};
  if (std::filesystem::exists(config)) {
    const Json json = parse_json(read_file(config, kMaxTokenizerBytes), config.string());
    if (const auto found = json.find("chat_template"); found != json.end() && found->is_string()) {
      return {{"file", "tokenizer_config.json"}, {"sha256", sha256(found->get_ref<const std::string&>())}};
    }
  }
  return "none";
}

// Parameters that one token passes through: all but the experts it is not sent to.
int64_t active_parameters(const io::ModelDirectory& model) {
  const ModelConfig& config = model.config();
  int64_t idle = 0;
  for (const bool is_moe : config.is_moe_layer) {
    if (is_moe)
      idle += (config.num_experts - config.num_experts_per_token) * 3 * config.moe_intermediate_size *
              config.hidden_size;
  }
  return model.num_parameters() - idle;
}

Description describe_memory(const io::ModelDirectory& model) {
  const ModelConfig& config = model.config();
  const auto parameters = static_cast<uint64_t>(model.num_parameters());
  const auto cached_numbers =
      static_cast<uint64_t>(2 * config.num_layers * config.num_kv_heads * config.head_dim);
  return {{"inference_bf16_bytes", 2 * parameters},
          {"inference_f32_bytes", 4 * parameters},
          {"kv_cache_bf16_bytes_per_token", 2 * cached_numbers},
          {"training_bytes", 16 * parameters},  // f32 weights, gradient and two moments
          {"training_with_bf16_rollouts_bytes", 18 * parameters}};
}

Description describe_model(const Path& path, const Path& base) {
  const io::ModelDirectory model(path, base);
  const ModelConfig& config = model.config();
  std::map<std::string, uint64_t> tensors_of_dtype;
  uint64_t stored_bytes = 0;
  for (const auto& tensor : model.tensors()) {
    ++tensors_of_dtype[std::string(dtype_name(tensor.dtype))];
    stored_bytes += tensor.bytes.size();
  }
  const Path text = model.text_path();
  Description description = {{"architecture", io::architecture_name(config.architecture)},
                             {"parameters", model.num_parameters()}};
  if (config.is_moe()) {
    description["active_parameters"] = active_parameters(model);
    description["experts"] = {{"count", config.num_experts}, {"per_token", config.num_experts_per_token}};
  }
  description["shape"] = {{"layers", config.num_layers},     {"hidden", config.hidden_size},
                          {"ffn", config.intermediate_size}, {"heads", config.num_heads},
                          {"kv_heads", config.num_kv_heads}, {"head_dim", config.head_dim},
                          {"vocabulary", config.vocab_size}, {"positions", config.max_position_embeddings},
                          {"rope_theta", config.rope_theta}, {"tied_embeddings", config.tie_word_embeddings}};
  if (config.rope_scaling.kind != RopeScaling::Kind::none)
    description["shape"]["rope_scaling"] = {{"factor", config.rope_scaling.factor},
                                            {"original_positions", config.rope_scaling.original_positions}};
  if (const io::AdapterDirectory* adapter = model.adapter())
    description["adapter"] = {
        {"base", model.base_path().string()},     {"rank", adapter->config().rank},
        {"alpha", adapter->config().alpha},       {"rslora", adapter->config().rslora},
        {"matrices", adapter->matrices().size()}, {"adapter_parameters", adapter->num_parameters()},
        {"adapter_bytes", adapter->num_bytes()}};
  description["files"] = model.num_files();
  description["tensors"] = tensors_of_dtype;
  description["stored_bytes"] = stored_bytes;
  description["memory"] = describe_memory(model);
  description["tokenizer"] = describe_tokenizer(text);
  description["eos_ids"] = model.generation().eos_ids;
  description["chat_template"] = describe_template(text);
  return description;
}

uint64_t bytes_below(const Path& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

bool is_checkpoint(const Path& path) { return std::filesystem::exists(path / "MANIFEST.json"); }

Description describe_checkpoint(const Path& path, const Path& base) {
  Description description = {{"step", io::verify_checkpoint(path)},
                             {"manifest", "every file has the size and SHA-256 it names"},
                             {"total_bytes", bytes_below(path)}};
  if (io::is_model(path / "model")) description["model"] = describe_model(path / "model", base);
  return description;
}

bool is_bank(const Path& path) { return path.extension() == ".jsonl"; }

Description describe_bank(const Path& path, const Path&) {
  const auto rollouts = io::read_rollouts(path);
  std::set<std::string> queries;
  std::set<uint64_t> policy_steps, seeds;
  uint64_t tokens = 0, longest = 0, cut = 0;
  for (const auto& rollout : rollouts) {
    queries.insert(rollout.query_id);
    policy_steps.insert(rollout.policy_step);
    seeds.insert(rollout.seed);
    tokens += rollout.response_ids.size();
    longest = std::max<uint64_t>(longest, rollout.response_ids.size());
    cut += rollout.finish == Finish::length;
  }
  const auto count = static_cast<double>(rollouts.size());
  Description description = {
      {"responses", rollouts.size()},       {"queries", queries.size()},
      {"response_tokens", tokens},          {"mean_response_tokens", static_cast<double>(tokens) / count},
      {"longest_response_tokens", longest}, {"cut_share", static_cast<double>(cut) / count},
      {"policy_steps", policy_steps},       {"seeds", seeds}};
  if (const auto meta = io::read_bank_meta(path)) {
    description["made_by"] = {{"model", meta->model},
                              {"fingerprint", meta->model_fingerprint},
                              {"temperature", meta->temperature},
                              {"top_p", meta->top_p},
                              {"max_response_tokens", meta->max_response_tokens},
                              {"precision", meta->precision}};
  }
  return description;
}

std::vector<std::string> names_in(const Path& directory, std::string_view extension) {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(directory)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == extension) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_run(const Path& path) {
  return std::filesystem::exists(path / "config.yaml") && std::filesystem::exists(path / "environment.json");
}

// Every checkpoint of a run: whole, or the first damage.
Description describe_checkpoints(const Path& folder) {
  Description checkpoints = Description::object();
  for (const auto& entry : io::list_checkpoints(folder)) {
    const auto damages = io::check_checkpoint(entry.path).damages;
    checkpoints[entry.path.filename().string()] = damages.empty() ? "whole" : "DAMAGED: " + damages.front();
  }
  return checkpoints;
}

uint64_t num_lines(const Path& path) {
  if (!std::filesystem::exists(path)) return 0;
  io::JsonlReader reader(path);
  uint64_t count = 0;
  while (reader.next()) ++count;
  return count;
}

Description describe_run(const Path& path, const Path&) {
  const Json environment =
      parse_json(read_file(path / "environment.json"), (path / "environment.json").string());
  const ConfigNode config =
      parse_yaml(read_file(path / "config.yaml", 1 << 20), (path / "config.yaml").string());
  Description description = Description::object();
  const bool is_fine_tuning = train::is_sft_run(path);
  if (is_fine_tuning) description["of"] = "ropd sft";
  for (const char* key : {"student", "teacher", "model", "data", "seed"}) {
    if (const ConfigNode* value = config_detail::find_entry(config, key); value && !value->scalar.empty())
      description[key] = value->scalar;
  }
  for (const char* key : {"started", "git_revision", "cpu", "threads"}) {
    if (environment.contains(key)) description[key] = environment[key];
  }
  if (is_fine_tuning) {
    description["steps"] = num_lines(path / "metrics.jsonl");
    description["checkpoints"] = describe_checkpoints(path / "checkpoints");
    description["is_finished"] = std::filesystem::exists(path / "model");
    description["total_bytes"] = bytes_below(path);
    return description;
  }
  uint64_t num_iterations = 0, num_steps = 0;
  if (std::filesystem::exists(path / "metrics.jsonl")) {
    const auto metrics = io::read_metrics(path / "metrics.jsonl");
    num_iterations = metrics.iterations.size();
    num_steps = metrics.open_steps.size();
    for (const auto& iteration : metrics.iterations) num_steps += iteration.steps.size();
  }
  description["iterations"] = num_iterations;
  description["steps"] = num_steps;
  Description checkpoints = Description::array();
  for (const auto& checkpoint : io::list_checkpoints(path / "checkpoints"))
    checkpoints.push_back(checkpoint.step);
  description["checkpoints_at_step"] = checkpoints;
  description["checkpoints"] = describe_checkpoints(path / "checkpoints");
  description["banks"] = names_in(path / "banks", ".jsonl");
  description["rollouts"] = names_in(path / "rollouts", ".jsonl").size();
  description["evaluations"] = names_in(path / "eval", "");
  description["total_bytes"] = bytes_below(path);
  return description;
}

// The more special first: a checkpoint holds a model, a run holds checkpoints.
constexpr Recogniser kRecognisers[] = {
    {"checkpoint", is_checkpoint, describe_checkpoint},
    {"run", is_run, describe_run},
    {"model", io::is_model, describe_model},
    {"bank", is_bank, describe_bank},
};

// Names of files need not be UTF-8.
std::string json_text(const Description& value) {
  return value.dump(-1, ' ', false, Description::error_handler_t::replace);
}

std::string value_text(const std::string& key, const Description& value) {
  if (value.is_number_integer() && (key.ends_with("bytes") || key.ends_with("bytes_per_token"))) {
    return format_bytes(value.get<double>());
  }
  if (value.is_number_integer() && key.ends_with("parameters")) {
    return value.dump() + " (" + format_count(value.get<double>()) + ")";
  }
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

void print_lines(const Description& description, const std::string& indent) {
  for (const auto& [key, value] : description.items()) {
    std::string line = indent + visible_line(key);
    if (value.is_object() && !value.empty()) {
      print_text(line + "\n");
      print_lines(value, indent + "  ");
    } else {
      line.resize(std::max<size_t>(line.size(), 36), ' ');
      print_text(line + " " + visible_line(value_text(key, value)) + "\n");
    }
  }
}

void inspect(const Path& path, const Path& base, bool as_json) {
  if (!std::filesystem::exists(path)) fail(path.string(), ": does not exist");
  for (const auto& recogniser : kRecognisers) {
    if (!recogniser.recognises(path)) continue;
    Description description = {{"kind", recogniser.kind}, {"path", path.string()}};
    description.update(recogniser.describe(path, base));
    if (as_json) {
      std::printf("%s\n", json_text(description).c_str());
    } else {
      print_lines(description, "");
    }
    return;
  }
  std::string kinds;
  for (const auto& recogniser : kRecognisers)
    kinds += (kinds.empty() ? "" : ", ") + std::string(recogniser.kind);
  fail(path.string(), ": not recognised, expected one of: ", kinds,
       " (a model directory holds a config.json, a run config.yaml and environment.json, a checkpoint "
       "MANIFEST.json)");
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto* command = app.add_subcommand("inspect", "what a model, bank, checkpoint or run holds");
  auto path = std::make_shared<std::string>(), base = std::make_shared<std::string>();
  command->add_option("DIR", *path, "folder, or the .jsonl file of a bank")->required();
  add_base(*command, "--base", *base);
  command->footer(
      "Example:\n  ropd inspect models/Qwen3-0.6B\n  ropd inspect runs/first/banks/initial.jsonl --json");
  command->callback([path, base, command] { inspect(*path, *base, wants_json(*command)); });
}

}  // namespace ropd::app
