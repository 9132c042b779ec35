#include "io/hf_config.h"

#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/json.h"

namespace ropd::io {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 31;  // of one dimension; products of two stay far below overflow
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxExperts = 4096;

struct Family {
  Architecture architecture;
  std::string_view class_name;  // in "architectures"
  std::string_view model_type;
  int64_t max_positions;  // Hugging Face's default where config.json is silent
};

constexpr std::array<Family, 4> kFamilies = {{
    {Architecture::qwen3, "Qwen3ForCausalLM", "qwen3", 32768},
    {Architecture::qwen2, "Qwen2ForCausalLM", "qwen2", 32768},
    {Architecture::llama, "LlamaForCausalLM", "llama", 2048},
    {Architecture::qwen3_moe, "Qwen3MoeForCausalLM", "qwen3_moe", 32768},
}};

// Typed access to one JSON object; a key that is absent or null is absent.
class Reader {
 public:
  Reader(const Json& object, std::string_view where) : object_(object), where_(where) {
    if (!object.is_object()) fail(where, ": expected a JSON object");
  }
  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<int64_t> integer(const char* key, int64_t low, int64_t high) const {
    const Json* value = find(key);
    if (!value) return std::nullopt;
    // 3e9 and 18446744073709551615 do not fit the signed type; compare as what they are.
    const bool fits = value->is_number_unsigned() ? value->get<uint64_t>() <= static_cast<uint64_t>(high)
                                                  : value->is_number_integer();
    if (!fits || value->get<int64_t>() < low || value->get<int64_t>() > high) {
      refuse(key, *value, "an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
    }
    return value->get<int64_t>();
  }
  int64_t required_integer(const char* key, int64_t low, int64_t high) const {
    const auto value = integer(key, low, high);
    if (!value) fail(where_, ": '", key, "' is missing");
    return *value;
  }
  std::optional<double> positive_number(const char* key) const {
    const Json* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_number() || !(value->get<double>() > 0)) refuse(key, *value, "a number > 0");
    return value->get<double>();
  }
  bool flag(const char* key, bool default_value) const {
    const Json* value = find(key);
    if (!value) return default_value;
    if (!value->is_boolean()) refuse(key, *value, "true or false");
    return value->get<bool>();
  }
  std::string text(const char* key, const std::string& default_value) const {
    const Json* value = find(key);
    if (!value) return default_value;
    if (!value->is_string()) refuse(key, *value, "text");
    return value->get<std::string>();
  }
  [[noreturn]] void refuse(const char* key, const Json& value, const std::string& expected) const {
    fail(where_, ": '", key, "' is ", shown(value), ", expected ", expected);
  }
  std::string_view where() const { return where_; }

 private:
  const Json& object_;
  std::string_view where_;
  static std::string shown(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80);
  }
};

const Family& find_family(const Reader& reader) {
  std::string name = reader.text("model_type", "");
  if (const Json* list = reader.find("architectures")) {
    if (!list->is_array() || list->empty() || !(*list)[0].is_string()) {
      reader.refuse("architectures", *list, "a list with one class name");
    }
    const auto class_name = (*list)[0].get<std::string>();
    for (const auto& family : kFamilies) {
      if (class_name == family.class_name) return family;
    }
    name = class_name;  // the class decides; a Qwen3 reward model also says model_type qwen3
  } else {
    for (const auto& family : kFamilies) {
      if (name == family.model_type) return family;
    }
  }
  fail(reader.where(), ": architecture '", name,
       "' is not known; known are Qwen3ForCausalLM, Qwen2ForCausalLM, LlamaForCausalLM, Qwen3MoeForCausalLM");
}

// Length-independent kinds only: "dynamic" and "longrope" change with the length of the sequence.
RopeScaling parse_rope_scaling(const Reader& rope, const char* key, int64_t max_positions) {
  RopeScaling scaling;
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  if (type == "default") return scaling;
  if (type == "linear") {
    scaling.kind = RopeScaling::Kind::linear;
  } else if (type == "llama3") {
    scaling.kind = RopeScaling::Kind::llama3;
  } else if (type == "yarn") {
    scaling.kind = RopeScaling::Kind::yarn;
  } else {
    fail(rope.where(), ": ", key, " of type '", type.substr(0, 40),
         "' is not supported, expected default, linear, llama3 or yarn");
  }
  const auto factor = rope.positive_number("factor");
  if (!factor || *factor < 1)
    fail(rope.where(), ": ", key, ".factor is ", factor ? "below 1" : "missing", ", expected a number >= 1");
  scaling.factor = *factor;
  scaling.original_positions = static_cast<double>(
      rope.integer("original_max_position_embeddings", 1, kMaxSize).value_or(max_positions));
  scaling.low_frequency = rope.positive_number("low_freq_factor").value_or(scaling.low_frequency);
  scaling.high_frequency = rope.positive_number("high_freq_factor").value_or(scaling.high_frequency);
  if (!(scaling.low_frequency < scaling.high_frequency))
    fail(rope.where(), ": ", key, ".low_freq_factor ", scaling.low_frequency,
         " is not below high_freq_factor ", scaling.high_frequency);
  scaling.slow_rotations = rope.positive_number("beta_slow").value_or(scaling.slow_rotations);
  scaling.fast_rotations = rope.positive_number("beta_fast").value_or(scaling.fast_rotations);
  scaling.truncates = rope.flag("truncate", true);
  // mscale(factor, m) = 0.1 m ln(factor) + 1; a ratio of two where both are given.
  const auto scale = [&](double m) { return 0.1 * m * std::log(scaling.factor) + 1; };
  const auto mscale = rope.positive_number("mscale"), mscale_all = rope.positive_number("mscale_all_dim");
  if (scaling.kind == RopeScaling::Kind::yarn)
    scaling.attention_factor =
        rope.positive_number("attention_factor")
            .value_or(mscale && mscale_all ? scale(*mscale) / scale(*mscale_all) : scale(1));
  return scaling;
}

// rope_theta at the top (old spelling, scaling in rope_scaling) or inside rope_parameters (new).
void parse_rope(ModelConfig& config, const Reader& reader) {
  config.rope_theta = reader.positive_number("rope_theta").value_or(10000.0);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* value = reader.find(key);
    if (!value) continue;
    if (!value->is_object()) reader.refuse(key, *value, "an object");
    const Reader rope(*value, reader.where());
    config.rope_scaling = parse_rope_scaling(rope, key, config.max_position_embeddings);
    config.rope_theta = rope.positive_number("rope_theta").value_or(config.rope_theta);
    if (config.rope_scaling.kind == RopeScaling::Kind::yarn && !(config.rope_theta > 1))
      fail(reader.where(), ": rope_theta is ", config.rope_theta, ", expected a number > 1 with yarn");
    if (rope.positive_number("partial_rotary_factor").value_or(1.0) != 1.0) {
      fail(reader.where(), ": ", key, ".partial_rotary_factor other than 1 is not supported");
    }
  }
}

void refuse_unsupported(const Reader& reader, Architecture architecture) {
  const auto activation = reader.text("hidden_act", "silu");
  if (activation != "silu")
    fail(reader.where(), ": hidden_act '", activation, "' is not supported, expected 'silu'");
  if (reader.flag("use_sliding_window", false)) fail(reader.where(), ": use_sliding_window is not supported");
  if (architecture != Architecture::qwen2 && reader.flag("attention_bias", false)) {
    fail(reader.where(), ": attention_bias is not supported for this architecture");
  }
  if (reader.flag("mlp_bias", false)) fail(reader.where(), ": mlp_bias is not supported");
  if (reader.find("quantization_config")) {
    fail(reader.where(),
         ": quantised weights (quantization_config) are not supported; use the F32, F16 or BF16 checkpoint");
  }
  if (reader.positive_number("partial_rotary_factor").value_or(1.0) != 1.0) {
    fail(reader.where(), ": partial_rotary_factor other than 1 is not supported");
  }
  if (const Json* types = reader.find("layer_types")) {
    if (!types->is_array()) reader.refuse("layer_types", *types, "a list");
    for (const auto& type : *types) {
      if (type != "full_attention") reader.refuse("layer_types", type, "only \"full_attention\"");
    }
  }
}

void parse_attention(ModelConfig& config, const Reader& reader) {
  config.num_heads = reader.required_integer("num_attention_heads", 1, kMaxSize);
  config.num_kv_heads = reader.integer("num_key_value_heads", 1, kMaxSize).value_or(config.num_heads);
  if (config.num_heads % config.num_kv_heads != 0) {
    fail(reader.where(), ": num_attention_heads ", config.num_heads,
         " is not a multiple of num_key_value_heads ", config.num_kv_heads);
  }
  if (const auto head_dim = reader.integer("head_dim", 1, kMaxSize)) {
    config.head_dim = *head_dim;
  } else {
    if (config.hidden_size % config.num_heads != 0) {
      fail(reader.where(), ": hidden_size ", config.hidden_size, " is not a multiple of num_attention_heads ",
           config.num_heads, " and there is no head_dim");
    }
    config.head_dim = config.hidden_size / config.num_heads;
  }
  if (config.head_dim % 2 != 0)
    fail(reader.where(), ": head_dim ", config.head_dim, " is odd; rotary embedding needs pairs");
  // Rows of projections are heads x head size; bounded here, nothing downstream overflows.
  if (config.num_heads > kMaxSize / config.head_dim) {
    fail(reader.where(), ": ", config.num_heads, " heads of size ", config.head_dim, " are too large");
  }
}

void parse_experts(ModelConfig& config, const Reader& reader) {
  // transformers 5 writes num_local_experts.
  const bool is_new = !reader.find("num_experts") && reader.find("num_local_experts");
  config.num_experts = reader.required_integer(is_new ? "num_local_experts" : "num_experts", 1, kMaxExperts);
  config.num_experts_per_token = reader.required_integer("num_experts_per_tok", 1, config.num_experts);
  config.moe_intermediate_size = reader.required_integer("moe_intermediate_size", 1, kMaxSize);
  config.norm_topk_prob = reader.flag("norm_topk_prob", false);
  const int64_t step = reader.integer("decoder_sparse_step", 1, kMaxSize).value_or(1);
  config.is_moe_layer.resize(static_cast<size_t>(config.num_layers));
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    config.is_moe_layer[static_cast<size_t>(layer)] = (layer + 1) % step == 0;
  }
  if (const Json* dense = reader.find("mlp_only_layers")) {
    if (!dense->is_array()) reader.refuse("mlp_only_layers", *dense, "a list of layer numbers");
    for (const auto& layer : *dense) {
      if (!layer.is_number_unsigned() || layer.get<uint64_t>() >= config.is_moe_layer.size()) {
        reader.refuse("mlp_only_layers", layer, "layer numbers below " + std::to_string(config.num_layers));
      }
      config.is_moe_layer[layer.get<size_t>()] = false;
    }
  }
}

std::string parse_dtype_name(const Reader& reader) {
  const std::string name = reader.text("dtype", reader.text("torch_dtype", "float32"));
  if (name != "float32" && name != "float16" && name != "bfloat16") {
    fail(reader.where(), ": dtype '", name, "' is not supported, expected float32, float16 or bfloat16");
  }
  return name;
}

Token parse_token(const Json& value, const Reader& reader, const char* key) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= static_cast<uint64_t>(kMaxSize)) {
    reader.refuse(key, value, "a token id or a list of them");
  }
  return value.get<Token>();
}

// Some old configs write -1 for "none".
Token parse_optional_token(const Reader& reader, const char* key) {
  const Json* value = reader.find(key);
  if (!value || *value == -1) return -1;
  return parse_token(value->is_array() && !value->empty() ? (*value)[0] : *value, reader, key);
}

void parse_special_tokens(GenerationConfig& generation, const Reader& reader) {
  if (const Json* eos = reader.find("eos_token_id"); eos && generation.eos_ids.empty()) {
    if (eos->is_array()) {
      for (const auto& id : *eos) generation.eos_ids.push_back(parse_token(id, reader, "eos_token_id"));
    } else if (*eos != -1) {
      generation.eos_ids.push_back(parse_token(*eos, reader, "eos_token_id"));
    }
  }
  if (generation.bos_id < 0) generation.bos_id = parse_optional_token(reader, "bos_token_id");
  if (generation.pad_id < 0) generation.pad_id = parse_optional_token(reader, "pad_token_id");
}

}  // namespace

ModelConfig parse_model_config(std::string_view config_json, std::string_view where) {
  const Json json = parse_json(config_json, where);
  const Reader reader(json, where);
  const Family& family = find_family(reader);
  refuse_unsupported(reader, family.architecture);
  ModelConfig config;
  config.architecture = family.architecture;
  config.hidden_size = reader.required_integer("hidden_size", 1, kMaxSize);
  config.intermediate_size = reader.required_integer("intermediate_size", 1, kMaxSize);
  config.num_layers = reader.required_integer("num_hidden_layers", 1, kMaxLayers);
  config.vocab_size = reader.required_integer("vocab_size", 1, kMaxSize - 1);
  config.max_position_embeddings =
      reader.integer("max_position_embeddings", 1, kMaxSize).value_or(family.max_positions);
  parse_attention(config, reader);
  config.rms_norm_eps = reader.positive_number("rms_norm_eps").value_or(1e-6);
  parse_rope(config, reader);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  config.has_qkv_bias = family.architecture == Architecture::qwen2;
  config.has_qk_norm =
      family.architecture == Architecture::qwen3 || family.architecture == Architecture::qwen3_moe;
  if (family.architecture == Architecture::qwen3_moe) parse_experts(config, reader);
  config.dtype = parse_dtype_name(reader);
  return config;
}

GenerationConfig parse_generation_config(std::string_view generation_config_json,
                                         std::string_view generation_where, std::string_view config_json,
                                         std::string_view config_where) {
  GenerationConfig generation;
  if (!generation_config_json.empty()) {
    const Json json = parse_json(generation_config_json, generation_where);
    parse_special_tokens(generation, Reader(json, generation_where));
  }
  if (!config_json.empty()) {
    const Json json = parse_json(config_json, config_where);
    parse_special_tokens(generation, Reader(json, config_where));
  }
  return generation;
}

std::string with_dtype(std::string_view config_json, DType dtype) {
  const std::string name = dtype == DType::f32 ? "float32" : dtype == DType::f16 ? "float16" : "bfloat16";
  parse_json(config_json, "config.json");  // refuses what the lenient parse below would let through
  auto json = nlohmann::ordered_json::parse(config_json);
  if (!json.is_object()) fail("config.json: expected a JSON object");
  const char* key = json.contains("dtype") ? "dtype" : "torch_dtype";
  if (json.contains(key) && json[key] == name) return std::string(config_json);
  json[key] = name;
  return json.dump(2) + "\n";
}

std::string_view architecture_name(Architecture architecture) {
  for (const auto& family : kFamilies) {
    if (family.architecture == architecture) return family.class_name;
  }
  return "?";
}

}  // namespace ropd::io
