// Small model directories for tests: a config.json of any architecture and weights of fixed random values
// that fit it.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "io/model_directory.h"
#include "io/safetensors.h"

namespace ropd::test {

// A config.json with one line changed or added: {"head_dim", "7"}.
inline std::string tiny_config(const std::string& class_name,
                               const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  std::vector<std::pair<std::string, std::string>> entries = {
      {"architectures", "[\"" + class_name + "\"]"},
      {"hidden_size", "16"},
      {"intermediate_size", "24"},
      {"num_hidden_layers", "2"},
      {"num_attention_heads", "4"},
      {"num_key_value_heads", "2"},
      {"head_dim", "8"},
      {"vocab_size", "32"},
      {"max_position_embeddings", "64"},
      {"rms_norm_eps", "1e-6"},
      {"rope_theta", "10000.0"},
      {"tie_word_embeddings", "false"},
      {"eos_token_id", "2"},
      {"torch_dtype", "\"float32\""},
  };
  if (class_name == "Qwen3MoeForCausalLM") {
    entries.insert(entries.end(),
                   {{"num_experts", "4"}, {"num_experts_per_tok", "2"}, {"moe_intermediate_size", "12"}});
  }
  for (const auto& change : changes) {
    bool is_known = false;
    for (auto& entry : entries) {
      if (entry.first == change.first) entry.second = change.second, is_known = true;
    }
    if (!is_known) entries.push_back(change);
  }
  std::string text;
  for (const auto& [key, value] : entries) {
    if (!value.empty()) text += std::string(text.empty() ? "" : ",") + "\n  \"" + key + "\": " + value;
  }
  return "{" + text + "\n}\n";
}

// Owns the data of tensors that it shows as StoredTensor.
struct TensorsInMemory {
  std::vector<std::vector<std::byte>> data;
  std::vector<io::StoredTensor> tensors;

  uint64_t seed = 1;

  void add(const std::string& name, DType dtype, std::vector<int64_t> shape, float scale = 0.25f) {
    const io::TensorInfo info{name, dtype, shape};
    std::vector<std::byte> bytes(info.num_bytes());
    for (int64_t i = 0; i < info.num_elements(); ++i) {
      const double uniform =
          random_uniform(seed, Purpose::test, {.key = text_key(name), .row = static_cast<uint32_t>(i)});
      const float value = scale * static_cast<float>(2 * uniform - 1);
      const uint16_t half = dtype == DType::f16 ? float_to_f16(value) : float_to_bf16(value);
      std::byte* place = bytes.data() + static_cast<size_t>(i) * dtype_bytes(dtype);
      if (dtype == DType::f32) {
        std::memcpy(place, &value, 4);
      } else {
        std::memcpy(place, &half, 2);
      }
    }
    data.push_back(std::move(bytes));
    tensors.push_back({name, dtype, std::move(shape), data.back()});
  }
};

inline TensorsInMemory tensors_for(const std::string& config_json, DType dtype = DType::f32,
                                   uint64_t seed = 1) {
  TensorsInMemory memory;
  memory.seed = seed;
  for (auto& expected : io::expected_tensors(io::parse_model_config(config_json, "config.json"))) {
    memory.add(expected.name, dtype, expected.shape);
  }
  return memory;
}

// A complete directory without tokenizer.
inline void write_tiny_model(const std::filesystem::path& directory, const std::string& config_json,
                             DType dtype = DType::f32, uint64_t seed = 1) {
  std::filesystem::create_directories(directory);
  write_file_atomically(directory / "config.json", config_json);
  io::write_safetensors(directory / "model.safetensors", tensors_for(config_json, dtype, seed).tensors);
}

// Changes the last value of a tensor by its lowest bit.
inline void flip_last_bit(const Path& safetensors, const std::string& tensor) {
  std::string content = read_file(safetensors);
  {
    const io::SafetensorsFile file(safetensors);
    const auto bytes = file.tensor(tensor).bytes;
    const std::string_view values(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    content[content.rfind(values) + values.size() - dtype_bytes(file.tensor(tensor).dtype)] ^= char{1};
  }
  write_file_atomically(safetensors, content);
}

}  // namespace ropd::test
