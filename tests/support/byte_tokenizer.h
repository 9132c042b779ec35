// A byte-level tokenizer without merges: one token a byte, id = byte, so cuts fall where a test wants them.
#pragma once
#include <string>

#include "text/tokenizer.h"
#include "text/tokenizer_file.h"

namespace ropd::test {

inline text::Tokenizer byte_tokenizer() {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    std::string key = text::byte_level_spelling(std::string(1, static_cast<char>(byte)));
    if (key == "\"" || key == "\\") key = "\\" + key;
    vocabulary += (byte ? ", \"" : "\"") + key + "\": " + std::to_string(byte);
  }
  return text::Tokenizer::parse(R"({"model": {"type": "BPE", "vocab": {)" + vocabulary +
                                    R"(}, "merges": []}, "added_tokens": [], "normalizer": {"type": "NFC"},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
      "decoder": {"type": "ByteLevel"}})",
                                "bytes");
}

}  // namespace ropd::test
