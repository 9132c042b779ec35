// A world for tests of whole runs: tiny student and teacher directories with a tokenizer of single
// characters, queries, banks, and the configuration of a run that takes milliseconds an iteration.
#pragma once

#include <string>
#include <vector>

#include "base/threads.h"
#include "io/rollout_file.h"
#include "io/save_model.h"
#include "support/error_of.h"
#include "support/naive_model.h"
#include "support/test_data.h"
#include "train/train_config.h"

namespace ropd::test {

// a..z 0..9 and the end of a response.
inline constexpr Token kTinyEnd = 36;
inline std::string tiny_character(Token id) {
  return std::string(1, static_cast<char>(id < 26 ? 'a' + id : '0' + id - 26));
}

inline std::string tiny_config_json(const ModelConfig& c) {
  const auto number = [](const char* name, int64_t value) {
    return std::string("  \"") + name + "\": " + std::to_string(value) + ",\n";
  };
  return "{\n  \"architectures\": [\"Qwen3ForCausalLM\"],\n  \"model_type\": \"qwen3\",\n" +
         number("hidden_size", c.hidden_size) + number("intermediate_size", c.intermediate_size) +
         number("num_hidden_layers", c.num_layers) + number("num_attention_heads", c.num_heads) +
         number("num_key_value_heads", c.num_kv_heads) + number("head_dim", c.head_dim) +
         number("vocab_size", c.vocab_size) + number("max_position_embeddings", c.max_position_embeddings) +
         number("rope_theta", static_cast<int64_t>(c.rope_theta)) +
         "  \"rms_norm_eps\": 1e-06,\n  \"hidden_act\": \"silu\",\n  \"attention_bias\": false,\n" +
         "  \"tie_word_embeddings\": " + (c.tie_word_embeddings ? "true" : "false") +
         ",\n  \"torch_dtype\": \"float32\"\n}\n";
}

inline void write_tiny_tokenizer(const Path& directory, const std::string& characters = "") {
  std::string vocab;
  for (Token id = 0; id < kTinyEnd; ++id) {
    const std::string character =
        characters.empty() ? tiny_character(id) : characters.substr(static_cast<size_t>(id), 1);
    vocab += (id ? ", \"" : "\"") + character + "\": " + std::to_string(id);
  }
  const std::string end =
      R"("content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true)";
  const std::string byte_level =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false})";
  write_file_atomically(
      directory / "tokenizer.json",
      R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [{"id": )" +
          std::to_string(kTinyEnd) + ", " + end + R"(}], "normalizer": {"type": "NFC"},
 "pre_tokenizer": )" +
          byte_level + R"(, "post_processor": )" + byte_level + R"(, "decoder": )" + byte_level +
          R"(,
 "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
 "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
 "vocab": {)" +
          vocab + R"(}, "merges": []}})");
  write_file_atomically(directory / "tokenizer_config.json",
                        R"({"added_tokens_decoder": {"36": {)" + end +
                            R"(}}, "eos_token": "<end>", "tokenizer_class": "Qwen2Tokenizer",
 "chat_template": "{%- for message in messages %}{{- message['content'] }}{%- endfor %}"})");
}

// A Hugging Face directory of these weights; with the tokenizer where the vocabulary has its size.
inline void write_tiny_directory(const Path& path, const model::Parameters& parameters,
                                 std::vector<Token> eos_ids = {kTinyEnd}, DType stored = DType::f32) {
  std::vector<io::TensorToSave> tensors;
  for (const auto& slot : parameters.slots())
    tensors.push_back(io::tensor_to_save(
        slot.name, slot.shape,
        parameters.values().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size)),
        stored));
  std::string eos;
  for (const Token id : eos_ids) eos += (eos.empty() ? "" : ", ") + std::to_string(id);
  io::SaveModelOptions options;
  options.config_json = tiny_config_json(parameters.config());
  options.generation_config_json = "{\"eos_token_id\": [" + eos + "]}\n";
  io::save_model_directory(path, options, std::move(tensors));
  if (parameters.config().vocab_size == kTinyEnd + 1) write_tiny_tokenizer(path);
}

// Responses of 1..max_length random ids behind prompts of two; query q<i % num_queries>.
inline std::vector<Rollout> random_rollouts(size_t count, int64_t vocab_size, uint64_t seed,
                                            size_t max_length = 8, size_t num_queries = 4) {
  const auto draw = [&](size_t i, uint32_t place, uint64_t bound) {
    return static_cast<Token>(random_bits(seed, Purpose::test, {i, place, 7})[0] % bound);
  };
  std::vector<Rollout> rollouts;
  for (size_t i = 0; i < count; ++i) {
    Rollout rollout;
    rollout.query_id = "q" + std::to_string(i % num_queries);
    rollout.sample = static_cast<uint32_t>(i / num_queries);
    for (uint32_t t = 0; t < 2; ++t)
      rollout.prompt_ids.push_back(draw(i, t, static_cast<uint64_t>(vocab_size) - 1));
    const size_t length = 1 + static_cast<size_t>(draw(i, 2, max_length));
    for (uint32_t t = 0; t < length; ++t)
      rollout.response_ids.push_back(draw(i, 3 + t, static_cast<uint64_t>(vocab_size) - 1));
    rollouts.push_back(std::move(rollout));
  }
  return rollouts;
}

// A folder with student/, teacher/, queries.jsonl (six) and room for runs.
class TinyWorld {
 public:
  explicit TinyWorld(const ModelConfig& shape = tiny_config(Architecture::qwen3), uint64_t student_seed = 1,
                     uint64_t teacher_seed = 2) {
    // So small that a second thread only waits; no result depends on it (session_test compares).
    set_num_threads(1);
    write_tiny_directory(path("student"), random_parameters(shape, student_seed));
    write_tiny_directory(path("teacher"), random_parameters(shape, teacher_seed));
    write_queries(6);
  }
  Path path(const std::string& name) const { return folder_ / name; }

  void write_queries(int count, const std::string& suffix = "") const {
    std::string lines;
    for (int i = 0; i < count; ++i)
      lines += "{\"id\": \"q" + std::to_string(i) + "\", \"problem\": \"ab" + std::to_string(i) + suffix +
               "\", \"answer\": \"" + std::to_string(i) + "\"}\n";
    write_file_atomically(path("queries.jsonl"), lines);
  }

  Path write_bank(const std::string& name, const std::vector<Rollout>& rollouts) const {
    io::write_rollouts(path(name), rollouts);
    return path(name);
  }

  // Ten responses an iteration in minibatches of 4, 4 and 2; R-OPD unless overridden: with
  // persistence 2 its trigger is set at iteration 8, with 1 at iteration 4.
  train::TrainConfig config(const std::string& output, std::vector<std::string> overrides = {}) const {
    const std::string yaml = "student: " + path("student").string() +
                             "\nteacher: " + path("teacher").string() + "\noutput: " + path(output).string() +
                             "\ndata: {queries: " + path("queries.jsonl").string() +
                             ", prompt_suffix: \"\", select: {all: true}}\n" + R"(
rollout: {max_response_tokens: 8, precision: f32, memory_gb: 0.002}
train: {iterations: 4, responses_per_iteration: 10, minibatch: 4, learning_rate: 0.0003, teacher_precision: f32,
        shards: 1, microbatch_tokens: 24}
objective: {top_k: 8}
curriculum: {bank: {responses: 20}}
alarms: {student_mass: 0, truncation: 1}
)";
    return train::parse_train_config(yaml, "tiny_world.h", overrides);
  }

 private:
  TemporaryDirectory folder_;
};

}  // namespace ropd::test
