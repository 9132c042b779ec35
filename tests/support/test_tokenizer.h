// For tests: small tokenizers written as real tokenizer.json files.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "support/test_data.h"
#include "text/tokenizer.h"

namespace ropd::text {

constexpr const char* kQwenSplitRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct TestTokenizer {
  std::vector<std::string> tokens;  // bytes; a repeated one is left out
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<AddedToken> added;  // ids are given in order when they are -1
  bool merges_are_strings = false;

  // All 256 bytes, then these tokens.
  static std::vector<std::string> with_all_bytes(std::vector<std::string> more = {}) {
    std::vector<std::string> result;
    for (int byte = 0; byte < 256; ++byte) result.emplace_back(1, static_cast<char>(byte));
    result.insert(result.end(), more.begin(), more.end());
    return result;
  }

  Json json() const {
    Json vocabulary = Json::object(), merge_list = Json::array(), added_list = Json::array();
    for (const auto& token : tokens) {
      const std::string spelling = byte_level_spelling(token);
      if (!vocabulary.contains(spelling)) vocabulary[spelling] = vocabulary.size();
    }
    for (const auto& [left, right] : merges) {
      const std::string a = byte_level_spelling(left), b = byte_level_spelling(right);
      merge_list.push_back(merges_are_strings ? Json(a + " " + b) : Json::array({a, b}));
    }
    size_t next = vocabulary.size();
    for (const auto& token : added) {
      added_list.push_back({{"id", token.id >= 0 ? Json(token.id) : Json(next)},
                            {"content", token.content},
                            {"single_word", token.is_single_word},
                            {"lstrip", token.strips_left},
                            {"rstrip", token.strips_right},
                            {"normalized", token.is_normalized},
                            {"special", token.is_special}});
      ++next;
    }
    const Json byte_level = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
    const Json split = {{"type", "Split"},
                        {"pattern", {{"Regex", kQwenSplitRegex}}},
                        {"behavior", "Isolated"},
                        {"invert", false}};
    return {{"version", "1.0"},
            {"added_tokens", added_list},
            {"normalizer", {{"type", "NFC"}}},
            {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level})}}},
            {"post_processor", byte_level},
            {"decoder", byte_level},
            {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merge_list}}}};
  }
  Tokenizer tokenizer() const { return Tokenizer::parse(json().dump(), "test tokenizer"); }
};

// A tokenizer of the shared data, loaded once for all tests of the program.
inline const Tokenizer& data_tokenizer(const std::string& name) {
  static std::map<std::string, Tokenizer> loaded;
  auto found = loaded.find(name);
  if (found == loaded.end())
    found = loaded.emplace(name, Tokenizer::load(test::data_directory() / "tokenizers" / name)).first;
  return found->second;
}

}  // namespace ropd::text
