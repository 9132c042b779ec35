// Shape and constants of a decoder, as read from a Hugging Face config.json. Checked once by the reader;
// constant afterwards.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "records/rollout.h"

namespace ropd {

enum class Architecture { qwen3, qwen2, llama, qwen3_moe };

// How rotary frequencies are stretched beyond the length a model was first trained on (config.json:
// rope_scaling). What each kind does with them: model/rope_frequencies.h.
struct RopeScaling {
  enum class Kind { none, linear, llama3, yarn };
  Kind kind = Kind::none;
  double factor = 1;
  double original_positions = 0;                   // llama3, yarn
  double low_frequency = 1, high_frequency = 4;    // llama3: turns within the original length
  double slow_rotations = 1, fast_rotations = 32;  // yarn: the same
  bool truncates = true;                           // yarn: the ramp begins and ends at whole dimensions
  double attention_factor = 1;                     // yarn: of cosine and sine
};

struct ModelConfig {
  Architecture architecture = Architecture::qwen3;
  int64_t hidden_size = 0;        // D
  int64_t intermediate_size = 0;  // F, of dense layers
  int64_t num_layers = 0;
  int64_t num_heads = 0;     // H
  int64_t num_kv_heads = 0;  // K
  int64_t head_dim = 0;      // E
  int64_t vocab_size = 0;    // V
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  bool tie_word_embeddings = false;
  bool has_qkv_bias = false;  // Qwen2
  bool has_qk_norm = false;   // Qwen3
  // mixture of experts; zero in dense models
  int64_t num_experts = 0;
  int64_t num_experts_per_token = 0;
  int64_t moe_intermediate_size = 0;
  bool norm_topk_prob = false;
  std::vector<bool> is_moe_layer;  // [num_layers] in MoE models, empty otherwise
  std::string dtype = "float32";   // as stored

  bool is_moe() const { return num_experts > 0; }
};

struct GenerationConfig {
  std::vector<Token> eos_ids;  // any of them ends a response
  Token bos_id = -1;
  Token pad_id = -1;
};

}  // namespace ropd
