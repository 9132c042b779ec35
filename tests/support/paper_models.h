// Folders with the published config.json of the paper's models (and of the laboratory's), without weights:
// what dry runs need.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/file.h"

namespace ropd::test {

// What the Qwen3 models share; `more` are the lines in which they differ.
inline std::string qwen3(const std::string& class_name, const std::string& more) {
  return "{\"architectures\": [\"" + class_name + "\"], " + more + R"(,
    "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128,
    "hidden_act": "silu", "initializer_range": 0.02, "rms_norm_eps": 1e-06, "rope_scaling": null,
    "sliding_window": null, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false,
    "vocab_size": 151936})";
}

// config.json by the folder's name in recipes and studies.
inline const std::map<std::string, std::string> kPaperModels = {
    {"Qwen3-0.6B",
     qwen3("Qwen3ForCausalLM", R"("model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
      "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 40960,
      "max_window_layers": 28, "rope_theta": 1000000, "tie_word_embeddings": true)")},
    {"Qwen3-1.7B",
     qwen3("Qwen3ForCausalLM", R"("model_type": "qwen3", "hidden_size": 2048, "intermediate_size": 6144,
      "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 40960,
      "max_window_layers": 28, "rope_theta": 1000000, "tie_word_embeddings": true)")},
    {"Qwen3-4B-Instruct-2507",
     qwen3("Qwen3ForCausalLM", R"("model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 262144,
      "max_window_layers": 36, "rope_theta": 5000000, "tie_word_embeddings": true)")},
    {"Qwen3-8B",
     qwen3("Qwen3ForCausalLM", R"("model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 40960,
      "max_window_layers": 36, "rope_theta": 1000000, "tie_word_embeddings": false)")},
    {"Qwen3-30B-A3B-Instruct-2507",
     qwen3("Qwen3MoeForCausalLM",
           R"("model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
      "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 262144,
      "max_window_layers": 48, "rope_theta": 10000000, "tie_word_embeddings": false, "num_experts": 128,
      "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true, "decoder_sparse_step": 1,
      "mlp_only_layers": [], "output_router_logits": false, "router_aux_loss_coef": 0.001)")},
    {"JustRL-DeepSeek-1.5B",
     R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960,
      "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "max_position_embeddings": 131072,
      "rope_theta": 10000, "rms_norm_eps": 1e-06, "hidden_act": "silu", "tie_word_embeddings": false,
      "torch_dtype": "bfloat16", "vocab_size": 151936, "bos_token_id": 151646, "eos_token_id": 151643})"},
    {"student", R"({"architectures": ["Qwen3ForCausalLM"], "hidden_size": 96, "intermediate_size": 256,
      "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 26,
      "max_position_embeddings": 1024, "tie_word_embeddings": true, "torch_dtype": "float32"})"},
    {"teacher", R"({"architectures": ["Qwen3ForCausalLM"], "hidden_size": 128, "intermediate_size": 352,
      "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 26,
      "max_position_embeddings": 1024, "tie_word_embeddings": true, "torch_dtype": "float32"})"},
};

inline void write_paper_models(const Path& folder) {
  // Plainly: nothing here has to survive a power cut.
  const auto write = [](const Path& path, const std::string& text) { std::ofstream(path) << text; };
  for (const auto& [name, config] : kPaperModels) {
    std::filesystem::create_directories(folder / name);
    write(folder / name / "config.json", config);
    write(folder / name / "generation_config.json",
          name.starts_with("Qwen3") ? R"({"eos_token_id": [151645, 151643]})" : R"({"eos_token_id": 24})");
  }
}

}  // namespace ropd::test
