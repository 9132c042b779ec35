#include "lab/model_files.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/json.h"

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

std::string config_text(const ModelConfig& config, const Vocabulary& vocabulary) {
  const OrderedJson json = {{"architectures", {"Qwen3ForCausalLM"}},
                            {"attention_bias", false},
                            {"attention_dropout", 0.0},
                            {"eos_token_id", vocabulary.ids[kEndToken]},
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
                            {"pad_token_id", vocabulary.ids[kPadToken]},
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

std::string generation_config_text(const Vocabulary& vocabulary) {
  const OrderedJson json = {{"do_sample", true},
                            {"eos_token_id", {vocabulary.ids[kEndToken]}},
                            {"pad_token_id", vocabulary.ids[kPadToken]},
                            {"temperature", 1.0},
                            {"top_p", 1.0}};
  return json.dump(2) + "\n";
}

std::string text_in(const Vocabulary& vocabulary, Token token) {
  return token == kEndToken   ? vocabulary.end_text
         : token == kPadToken ? vocabulary.pad_text
                              : std::string(token_text(token));
}

// `token` is the world's.
OrderedJson added_token(const Vocabulary& vocabulary, Token token) {
  return {{"id", vocabulary.ids[token]},
          {"content", text_in(vocabulary, token)},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", false},
          {"normalized", false},
          {"special", token != kBoxToken}};
}

// Every single character and its number, ascending by number.
OrderedJson characters(const Vocabulary& vocabulary) {
  std::map<Token, std::string> by_id;
  for (Token token = 0; token < kBoxToken; ++token)
    by_id[vocabulary.ids[token]] = std::string(token_text(token));
  char unused = 'g';  // the first letter that the world does not write
  for (Token id = 0; id < vocabulary.size; ++id)
    if (std::find(vocabulary.ids.begin(), vocabulary.ids.end(), id) == vocabulary.ids.end())
      by_id[id] = std::string(1, unused++);
  OrderedJson vocab = OrderedJson::object();
  for (const auto& [id, text] : by_id) vocab[text] = id;
  return vocab;
}

std::string tokenizer_text(const Vocabulary& vocabulary) {
  const OrderedJson byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const OrderedJson split = {
      {"type", "Split"}, {"pattern", {{"Regex", kQwenPattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  OrderedJson added = OrderedJson::array();
  for (const Token token : {kBoxToken, kEndToken, kPadToken}) added.push_back(added_token(vocabulary, token));
  const OrderedJson json = {{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", added},
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
                              {"vocab", characters(vocabulary)},
                              {"merges", OrderedJson::array()}}}};
  return json.dump(1) + "\n";
}

std::string tokenizer_config_text(const Vocabulary& vocabulary) {
  OrderedJson decoder = OrderedJson::object();
  for (const Token token : {kBoxToken, kEndToken, kPadToken}) {
    OrderedJson entry = added_token(vocabulary, token);
    entry.erase("id");
    decoder[std::to_string(vocabulary.ids[token])] = entry;
  }
  const OrderedJson json = {{"add_bos_token", false},
                            {"add_prefix_space", false},
                            {"added_tokens_decoder", decoder},
                            {"bos_token", nullptr},
                            {"chat_template", kChatTemplate},
                            {"clean_up_tokenization_spaces", false},
                            {"eos_token", vocabulary.end_text},
                            {"errors", "replace"},
                            {"model_max_length", 1024},
                            {"pad_token", vocabulary.pad_text},
                            {"tokenizer_class", "Qwen2Tokenizer"},
                            {"unk_token", nullptr}};
  return json.dump(2) + "\n";
}

}  // namespace

ModelConfig teacher_shape() { return shape(128, 4, 32, 352); }
ModelConfig student_shape() { return shape(96, 3, 24, 256); }
ModelConfig medium_student_shape() { return shape(112, 3, 28, 304); }
ModelConfig large_student_shape() { return teacher_shape(); }
ModelConfig second_teacher_shape() {
  ModelConfig config = medium_student_shape();
  config.vocab_size = other_vocabulary().size;
  return config;
}

const Vocabulary& own_vocabulary() {
  static const Vocabulary vocabulary = [] {
    Vocabulary own{.end_text = std::string(token_text(kEndToken)),
                   .pad_text = std::string(token_text(kPadToken))};
    for (Token token = 0; token < kVocabSize; ++token) own.ids[token] = token;
    return own;
  }();
  return vocabulary;
}

const Vocabulary& other_vocabulary() {
  static const Vocabulary vocabulary = [] {
    constexpr Token kCharacters = kBoxToken + 6;  // a tokenizer numbers added tokens behind the others
    Vocabulary other{.size = kCharacters + 3, .end_text = "<|stop|>", .pad_text = "<|blank|>"};
    for (Token token = 0; token < kBoxToken; ++token)
      other.ids[token] = (5 * token + 11) % kCharacters;  // no two alike: 29 is a prime
    other.ids[kBoxToken] = kCharacters;
    other.ids[kEndToken] = kCharacters + 1;
    other.ids[kPadToken] = kCharacters + 2;
    return other;
  }();
  return vocabulary;
}

int64_t count_parameters(const ModelConfig& config) {
  const int64_t width = config.hidden_size;
  const int64_t attention =
      width * config.head_dim * (2 * config.num_heads + 2 * config.num_kv_heads) + 2 * config.head_dim;
  const int64_t block = attention + 3 * width * config.intermediate_size + 2 * width;
  return config.vocab_size * width + config.num_layers * block + width;
}

void write_lab_model_files(const Path& directory, const ModelConfig& config, const Vocabulary& vocabulary) {
  std::filesystem::create_directories(directory);
  write_file_atomically(directory / "config.json", config_text(config, vocabulary));
  write_file_atomically(directory / "generation_config.json", generation_config_text(vocabulary));
  write_file_atomically(directory / "tokenizer.json", tokenizer_text(vocabulary));
  write_file_atomically(directory / "tokenizer_config.json", tokenizer_config_text(vocabulary));
}

}  // namespace ropd::lab
