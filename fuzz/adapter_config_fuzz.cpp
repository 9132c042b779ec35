// Any text as adapter_config.json: refused with Error, or what is written for PEFT says the same again; against a
// small model every adapted matrix has a rank that it can have.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "io/adapter_directory.h"
#include "io/hf_config.h"

namespace {

constexpr const char* kModel = R"({"architectures": ["Qwen3ForCausalLM"], "hidden_size": 16,
  "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 8, "vocab_size": 32, "rope_theta": 10000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu",
  "max_position_embeddings": 64, "tie_word_embeddings": true, "torch_dtype": "float32"})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto model = ropd::io::parse_model_config(kModel, "model");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto parsed = ropd::io::parse_adapter_config(text, "fuzz");
    const std::string written = ropd::io::adapter_config_json(parsed.adapter, parsed.base);
    const auto again = ropd::io::parse_adapter_config(written, "again");
    if (!(again.adapter == parsed.adapter) || again.base != parsed.base) std::abort();
    for (const auto& matrix : ropd::io::adapter_matrices(model, parsed.adapter, "fuzz"))
      if (matrix.rank < 1 || matrix.rank > std::min(matrix.outputs, matrix.inputs) ||
          !std::isfinite(matrix.scale))
        std::abort();
  } catch (const ropd::Error& error) {
    if (std::string_view(error.what()).starts_with("again")) std::abort();
  }
  return 0;
}
