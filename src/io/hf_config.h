// Hugging Face config.json and generation_config.json, in old and new spellings, into the records of the
// program. What the model code does not compute (rope scaling that depends on the length, sliding windows,
// biases, other activations) is refused by name here.
#pragma once
#include <string>
#include <string_view>

#include "records/model_config.h"
#include "tensor/dtype.h"

namespace ropd::io {

// `where` begins every error text.
ModelConfig parse_model_config(std::string_view config_json, std::string_view where);

// EOS ids come from generation_config.json and, where it does not name them, from config.json. An empty text
// means no such file.
GenerationConfig parse_generation_config(std::string_view generation_config_json,
                                         std::string_view generation_where, std::string_view config_json,
                                         std::string_view config_where);

// config.json with its dtype key (torch_dtype or dtype) set; unchanged, byte for byte, when it says so
// already.
std::string with_dtype(std::string_view config_json, DType dtype);

std::string_view architecture_name(Architecture architecture);  // Qwen3ForCausalLM

}  // namespace ropd::io
