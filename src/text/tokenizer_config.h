// tokenizer_config.json: the names of the special tokens and the inline chat template. A missing file reads
// as an empty one.
#pragma once
#include <optional>
#include <string>

#include "base/file.h"

namespace ropd::text {

struct TokenizerConfig {
  std::optional<std::string> bos_token, eos_token, pad_token, unk_token;
  std::optional<std::string> chat_template;  // inline; of several named ones the one called "default"
};

TokenizerConfig read_tokenizer_config(const Path& model_directory);

}  // namespace ropd::text
