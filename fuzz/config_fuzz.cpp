// Any text as config.json and generation_config.json: refused with Error, or a config whose numbers fit
// together.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "io/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto generation = ropd::io::parse_generation_config(text, "fuzz", text, "fuzz");
    for (const auto id : generation.eos_ids) {
      if (id < 0) std::abort();
    }
  } catch (const ropd::Error&) {
  }
  try {
    const auto config = ropd::io::parse_model_config(text, "fuzz");
    if (config.num_heads % config.num_kv_heads != 0 || config.head_dim % 2 != 0 || config.hidden_size <= 0)
      std::abort();
    if (config.is_moe() && config.is_moe_layer.size() != static_cast<size_t>(config.num_layers)) std::abort();
    const auto saved = ropd::io::with_dtype(text, ropd::DType::bf16);
    if (ropd::io::parse_model_config(saved, "fuzz").dtype != "bfloat16") std::abort();
  } catch (const ropd::Error&) {
  }
  return 0;
}
