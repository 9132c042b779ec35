#include "lab/model_files.h"

#include <string>

#include "base/json.h"
#include "lab/world.h"

namespace ropd::lab {
namespace {

// Order of keys as Hugging Face writes it, for people who open the file.
using OrderedJson = nlohmann::ordered_json;

// Qwen's split into words, single digits, punctuation and white space. With one token per character it
// changes nothing; it is here so that the lab exercises the same tokenizer path as real models.
constexpr const char* kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kChatTemplate = "{%- for message in messages %}{{- message['content'] }}{%- endfor %}";

ModelConfig shape(int64_t width, int64_t layers, int64_t head_dim, int64_t feed_forward) {
  ModelConfig config;
  config.hidden_size = width;
  config.intermediate_size = feed_forward;
  config.num_layers = layers;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = head_dim;
  config.vocab_size = kVocabSize;
  config.max_position_embeddings = 1024;
  config.rope_theta = 500.0;
  config.tie_word_embeddings = true;
  config.has_qk_norm = true;
  return config;
}

std::string config_text(const ModelConfig& config) {
  const OrderedJson json = {{"architectures", {"Qwen3ForCausalLM"}},
                            {"attention_bias", false},
                            {"attention_dropout", 0.0},
                            {"eos_token_id", kEndToken},
                            {"head_dim", config.head_dim},
                            {"hidden_act", "silu"},
                            {"hidden_size", config.hidden_size},
                            {"initializer_range", 0.02},
                            {"intermediate_size", config.intermediate_size},
                            {"max_position_embeddings", config.max_position_embeddings},
                            {"max_window_layers", config.num_layers},
                            {"model_type", "qwen3"},
                            {"num_attention_heads", config.num_heads},
                            {"num_hidden_layers", config.num_layers},
                            {"num_key_value_heads", config.num_kv_heads},
                            {"pad_token_id", kPadToken},
                            {"rms_norm_eps", config.rms_norm_eps},
                            {"rope_scaling", nullptr},
                            {"rope_theta", config.rope_theta},
                            {"sliding_window", nullptr},
                            {"tie_word_embeddings", config.tie_word_embeddings},
                            {"torch_dtype", config.dtype},
                            {"use_cache", true},
                            {"use_sliding_window", false},
                            {"vocab_size", config.vocab_size}};
  return json.dump(2) + "\n";
}

std::string generation_config_text() {
  const OrderedJson json = {{"do_sample", true},
                            {"eos_token_id", {kEndToken}},
                            {"pad_token_id", kPadToken},
                            {"temperature", 1.0},
                            {"top_p", 1.0}};
  return json.dump(2) + "\n";
}

OrderedJson added_token(Token id) {
  return {{"id", id},        {"content", token_text(id)}, {"single_word", false},      {"lstrip", false},
          {"rstrip", false}, {"normalized", false},       {"special", id != kBoxToken}};
}

std::string tokenizer_text() {
  const OrderedJson byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const OrderedJson split = {
      {"type", "Split"}, {"pattern", {{"Regex", kQwenPattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  OrderedJson vocab = OrderedJson::object();
  for (Token id = 0; id < kBoxToken; ++id) vocab[std::string(token_text(id))] = id;
  const OrderedJson json = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", {added_token(kBoxToken), added_token(kEndToken), added_token(kPadToken)}},
      {"normalizer", {{"type", "NFC"}}},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}}},
      {"post_processor", byte_level},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", ""},
        {"end_of_word_suffix", ""},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", OrderedJson::array()}}}};
  return json.dump(1) + "\n";
}

std::string tokenizer_config_text() {
  OrderedJson decoder = OrderedJson::object();
  for (const Token id : {kBoxToken, kEndToken, kPadToken}) {
    OrderedJson entry = added_token(id);
    entry.erase("id");
    decoder[std::to_string(id)] = entry;
  }
  const OrderedJson json = {{"add_bos_token", false},
                            {"add_prefix_space", false},
                            {"added_tokens_decoder", decoder},
                            {"bos_token", nullptr},
                            {"chat_template", kChatTemplate},
                            {"clean_up_tokenization_spaces", false},
                            {"eos_token", token_text(kEndToken)},
                            {"errors", "replace"},
                            {"model_max_length", 1024},
                            {"pad_token", token_text(kPadToken)},
                            {"tokenizer_class", "Qwen2Tokenizer"},
                            {"unk_token", nullptr}};
  return json.dump(2) + "\n";
}

}  // namespace

ModelConfig teacher_shape() { return shape(128, 4, 32, 352); }
ModelConfig student_shape() { return shape(96, 3, 24, 256); }

int64_t count_parameters(const ModelConfig& config) {
  const int64_t width = config.hidden_size;
  const int64_t attention =
      width * config.head_dim * (2 * config.num_heads + 2 * config.num_kv_heads) + 2 * config.head_dim;
  const int64_t block = attention + 3 * width * config.intermediate_size + 2 * width;
  return config.vocab_size * width + config.num_layers * block + width;
}

void write_lab_model_files(const Path& directory, const ModelConfig& config) {
  std::filesystem::create_directories(directory);
  write_file_atomically(directory / "config.json", config_text(config));
  write_file_atomically(directory / "generation_config.json", generation_config_text());
  write_file_atomically(directory / "tokenizer.json", tokenizer_text());
  write_file_atomically(directory / "tokenizer_config.json", tokenizer_config_text());
}

}  // namespace ropd::lab
