#include "text/tokenizer_file.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.h"
#include "text/json_text.h"
#include "text/unicode.h"

namespace ropd::text {

namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxTokens = size_t{1} << 24;
constexpr size_t kMaxAddedTokenBytes = 4096;  // bounds the work of matching at one place of a text

constexpr std::string_view kQwenRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct ByteAlphabet {
  std::array<char32_t, 256> of_byte{};
  std::array<int16_t, 512> to_byte{};  // by code point; -1 = not of the alphabet
  ByteAlphabet() {
    to_byte.fill(-1);
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool is_printable =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t point = is_printable ? static_cast<char32_t>(byte) : next++;
      of_byte[static_cast<size_t>(byte)] = point;
      to_byte[point] = static_cast<int16_t>(byte);
    }
  }
};

std::optional<std::string> bytes_of(const ByteAlphabet& alphabet, std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t index = 0; index < spelling.size();) {
    const CodePoint point = code_point_at(spelling, index);
    if (point.value >= alphabet.to_byte.size() || alphabet.to_byte[point.value] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(alphabet.to_byte[point.value]));
    index += point.num_bytes;
  }
  return bytes;
}

// Reads one file; holds what every part of the reading needs for its error texts.
class FileReader {
 public:
  FileReader(const std::string& where, dom::object root) : where_(where), root_(root) {}

  TokenizerFile read() {
    read_normalizer();
    read_pre_tokenizer();
    check_post_processor();
    check_decoder();
    const dom::object model = object_of(root_, "model", "the file");
    read_model_options(model);
    read_vocabulary(object_of(model, "vocab", "model"));
    read_merges(model);
    read_unknown(model);
    read_added_tokens();
    return std::move(result_);
  }

 private:
  const std::string& where_;
  dom::object root_;
  TokenizerFile result_;
  std::unordered_map<std::string_view, Token> id_of_spelling_;  // keys live in the parsed document

  static std::string shown(std::string_view text) {
    constexpr size_t kMaxShown = 120;
    return text.size() <= kMaxShown
               ? std::string(text)
               : repair_utf8(text.substr(0, kMaxShown)) + "... (" + std::to_string(text.size()) + " bytes)";
  }

  static std::optional<dom::element> find(dom::object object, std::string_view key) {
    dom::element value;
    if (object.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }

  dom::object object_of(dom::object parent, std::string_view key, std::string_view what) const {
    dom::object value;
    if (parent.at_key(key).get(value) != simdjson::SUCCESS)
      fail(where_, ": ", what, " has no object \"", key, "\" (not a tokenizer.json of Hugging Face?)");
    return value;
  }

  std::string_view type_of(dom::element element, std::string_view what) const {
    std::string_view type;
    dom::object object;
    if (element.get(object) != simdjson::SUCCESS || object.at_key("type").get(type) != simdjson::SUCCESS)
      fail(where_, ": ", what, " has no \"type\"");
    return type;
  }

  bool flag_of(dom::object object, std::string_view key, bool if_absent, std::string_view what) const {
    const auto value = find(object, key);
    if (!value) return if_absent;
    bool flag = false;
    if (value->get(flag) != simdjson::SUCCESS) fail(where_, ": ", what, ".", key, " must be true or false");
    return flag;
  }

  // The members of a Sequence, or the element itself.
  std::vector<dom::element> steps_of(dom::element element, std::string_view what,
                                     std::string_view list_key) const {
    if (type_of(element, what) != "Sequence") return {element};
    dom::array list;
    dom::object object;
    if (element.get(object) != simdjson::SUCCESS || object.at_key(list_key).get(list) != simdjson::SUCCESS)
      fail(where_, ": ", what, " is a Sequence without \"", list_key, "\"");
    return {list.begin(), list.end()};
  }

  void read_normalizer() {
    const auto element = find(root_, "normalizer");
    if (!element) return;
    for (const dom::element step : steps_of(*element, "normalizer", "normalizers")) {
      const auto type = type_of(step, "normalizer");
      if (type != "NFC")
        fail(where_, ": normalizer \"", shown(type), "\" is not supported (expected NFC or none)");
      result_.normalizes_nfc = true;
    }
  }

  void read_pre_tokenizer() {
    const auto element = find(root_, "pre_tokenizer");
    if (!element) fail(where_, ": no pre_tokenizer (expected ByteLevel, alone or behind a Split)");
    const auto steps = steps_of(*element, "pre_tokenizer", "pretokenizers");
    if (steps.empty() || type_of(steps.back(), "pre_tokenizer") != "ByteLevel")
      fail(where_, ": pre_tokenizer must end with ByteLevel, found ",
           steps.empty() ? "nothing" : shown(type_of(steps.back(), "pre_tokenizer")));
    check_byte_level(steps.back());
    result_.split = SplitRule::whole_text;
    if (steps.size() > 2)
      fail(where_, ": pre_tokenizer has ", steps.size(),
           " steps (expected at most a Split and ByteLevel; other model family?)");
    if (steps.size() == 2) result_.split = split_of(steps.front());
  }

  void check_byte_level(dom::element step) const {
    dom::object object;
    if (step.get(object) != simdjson::SUCCESS) fail(where_, ": pre_tokenizer ByteLevel is not an object");
    if (flag_of(object, "add_prefix_space", true, "ByteLevel"))
      fail(where_, ": pre_tokenizer ByteLevel with add_prefix_space=true is not supported (expected false)");
    if (flag_of(object, "use_regex", true, "ByteLevel"))
      fail(where_,
           ": pre_tokenizer ByteLevel with use_regex=true (GPT-2) is not supported (expected false and a "
           "Split)");
  }

  SplitRule split_of(dom::element step) const {
    const auto type = type_of(step, "pre_tokenizer");
    if (type != "Split")
      fail(where_, ": pre_tokenizer \"", shown(type), "\" is not supported (expected Split)");
    std::string_view regex, behavior;
    dom::object object;
    if (step.get(object) != simdjson::SUCCESS || object["pattern"]["Regex"].get(regex) != simdjson::SUCCESS)
      fail(where_, ": pre_tokenizer Split needs pattern.Regex");
    // The known expressions match every character, so to keep the matches and remove what lies between them
    // is the same as to isolate them.
    const bool is_inverted = flag_of(object, "invert", false, "Split");
    if (object["behavior"].get(behavior) != simdjson::SUCCESS ||
        behavior != (is_inverted ? "Removed" : "Isolated"))
      fail(where_, ": pre_tokenizer Split with behavior \"", shown(behavior),
           "\" and invert=", is_inverted ? "true" : "false",
           " is not supported (expected Isolated and false, or Removed and true)");
    if (regex == kQwenRegex) return SplitRule::qwen;
    if (regex == kLlama3Regex) return SplitRule::llama3;
    fail(where_, ": pre_tokenizer Split with an unknown regex ", shown(regex),
         " (known: those of Qwen2/Qwen3/DeepSeek-R1-Distill-Qwen and Llama-3)");
  }

  // Post-processors only add BOS/EOS around a text, which the chat template does here; any other kind is
  // unknown.
  void check_post_processor() const {
    const auto element = find(root_, "post_processor");
    if (!element) return;
    for (const dom::element step : steps_of(*element, "post_processor", "processors")) {
      const auto type = type_of(step, "post_processor");
      if (type != "ByteLevel" && type != "TemplateProcessing")
        fail(where_, ": post_processor \"", shown(type), "\" is not supported");
    }
  }

  void check_decoder() const {
    const auto element = find(root_, "decoder");
    if (!element) fail(where_, ": no decoder (expected ByteLevel)");
    for (const dom::element step : steps_of(*element, "decoder", "decoders"))
      if (const auto type = type_of(step, "decoder"); type != "ByteLevel")
        fail(where_, ": decoder \"", shown(type), "\" is not supported (expected ByteLevel)");
  }

  void read_model_options(dom::object model) {
    std::string_view type = "BPE", affix;  // old files leave the type out
    if (const auto element = find(model, "type"); element && element->get(type) != simdjson::SUCCESS)
      fail(where_, ": model.type must be a string");
    if (type != "BPE") fail(where_, ": model \"", shown(type), "\" is not supported (expected BPE)");
    double dropout = 0;
    if (const auto element = find(model, "dropout");
        element && (element->get(dropout) != simdjson::SUCCESS || dropout != 0))
      fail(where_, ": model.dropout is not supported (ids would be random)");
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const auto element = find(model, key);
          element && (element->get(affix) != simdjson::SUCCESS || !affix.empty()))
        fail(where_, ": model.", key, " is not supported (expected none)");
    if (flag_of(model, "byte_fallback", false, "model"))
      fail(where_, ": model.byte_fallback is not supported (expected a byte-level vocabulary)");
    result_.ignores_merges = flag_of(model, "ignore_merges", false, "model");
    result_.fuses_unknown = flag_of(model, "fuse_unk", false, "model");
  }

  void read_vocabulary(dom::object vocabulary) {
    const ByteAlphabet alphabet;
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : vocabulary) ++count;
    if (count == 0 || count > kMaxTokens)
      fail(where_, ": model.vocab has ", count, " tokens (expected 1 to ", kMaxTokens, ")");
    result_.tokens.resize(count);
    result_.is_byte_level.assign(count, 0);
    std::vector<uint8_t> is_taken(count, 0);
    id_of_spelling_.reserve(count * 2);
    for (const auto& [spelling, value] : vocabulary) {
      uint64_t id = 0;
      if (value.get(id) != simdjson::SUCCESS)
        fail(where_, ": model.vocab token \"", shown(spelling),
             "\" has an id that is not a whole number >= 0");
      if (id >= count)
        fail(where_, ": model.vocab token \"", shown(spelling), "\" has id ", id, ", but there are only ",
             count, " tokens (ids must be 0 to ", count - 1, " without gaps)");
      if (is_taken[id])
        fail(where_, ": model.vocab gives id ", id, " twice, the second time to \"", shown(spelling), "\"");
      if (!id_of_spelling_.emplace(spelling, static_cast<Token>(id)).second)
        fail(where_, ": model.vocab has the token \"", shown(spelling), "\" twice");
      is_taken[id] = 1;
      if (auto bytes = bytes_of(alphabet, spelling)) {
        result_.tokens[id] = std::move(*bytes);
        result_.is_byte_level[id] = 1;
      } else {
        result_.tokens[id] = spelling;
      }
    }
  }

  Token merge_part(std::string_view spelling, size_t index) const {
    const auto found = id_of_spelling_.find(spelling);
    if (found == id_of_spelling_.end())
      fail(where_, ": merge ", index, " names \"", shown(spelling),
           "\", which is not in model.vocab (vocabulary and merges of different tokenizers?)");
    return found->second;
  }

  void read_merges(dom::object model) {
    dom::array merges;
    if (model.at_key("merges").get(merges) != simdjson::SUCCESS)
      fail(where_, ": model has no array \"merges\"");
    result_.merges.reserve(merges.size());
    std::string joined;
    size_t index = 0;
    for (const dom::element element : merges) {
      std::string_view left, right;
      read_merge_pair(left, right, element, index);
      joined.assign(left).append(right);
      result_.merges.push_back(
          {merge_part(left, index), merge_part(right, index), merge_part(joined, index)});
      ++index;
    }
  }

  void read_merge_pair(std::string_view& left, std::string_view& right, dom::element element,
                       size_t index) const {
    std::string_view text;
    dom::array pair;
    if (element.get(text) == simdjson::SUCCESS) {
      const size_t space = text.find(' ');
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        fail(where_, ": merge ", index, " \"", shown(text), "\" must be two tokens with one space between");
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (element.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
               pair.at(0).get(left) != simdjson::SUCCESS || pair.at(1).get(right) != simdjson::SUCCESS) {
      fail(where_, ": merge ", index, " must be \"left right\" or [\"left\", \"right\"]");
    }
    if (left.empty() || right.empty()) fail(where_, ": merge ", index, " has an empty part");
  }

  void read_unknown(dom::object model) {
    const auto element = find(model, "unk_token");
    if (!element) return;
    std::string_view spelling;
    if (element->get(spelling) != simdjson::SUCCESS) fail(where_, ": model.unk_token must be a string");
    const auto found = id_of_spelling_.find(spelling);
    if (found == id_of_spelling_.end())
      fail(where_, ": model.unk_token \"", shown(spelling), "\" is not in model.vocab");
    result_.unknown = found->second;
  }

  AddedToken added_token(dom::element element, size_t index) const {
    dom::object object;
    AddedToken token;
    uint64_t id = 0;
    std::string_view content;
    if (element.get(object) != simdjson::SUCCESS || object.at_key("id").get(id) != simdjson::SUCCESS ||
        object.at_key("content").get(content) != simdjson::SUCCESS)
      fail(where_, ": added_tokens[", index, "] needs an \"id\" >= 0 and a string \"content\"");
    if (content.empty() || content.size() > kMaxAddedTokenBytes)
      fail(where_, ": added_tokens[", index, "] has ", content.size(), " bytes of content (expected 1 to ",
           kMaxAddedTokenBytes, ")");
    if (id >= kMaxTokens)
      fail(where_, ": added token \"", shown(content), "\" has id ", id, " (expected less than ", kMaxTokens,
           ")");
    token.id = static_cast<Token>(id);
    token.content = content;
    token.is_special = flag_of(object, "special", false, "added token");
    token.is_single_word = flag_of(object, "single_word", false, "added token");
    token.strips_left = flag_of(object, "lstrip", false, "added token");
    token.strips_right = flag_of(object, "rstrip", false, "added token");
    token.is_normalized = flag_of(object, "normalized", !token.is_special, "added token");
    return token;
  }

  void read_added_tokens() {
    const auto element = find(root_, "added_tokens");
    if (!element) return;
    dom::array list;
    if (element->get(list) != simdjson::SUCCESS) fail(where_, ": added_tokens must be an array");
    size_t index = 0;
    for (const dom::element entry : list) result_.added.push_back(added_token(entry, index++));
    std::stable_sort(result_.added.begin(), result_.added.end(),
                     [](const AddedToken& left, const AddedToken& right) { return left.id < right.id; });
    check_added_ids();
  }

  // Added tokens either name a token of the vocabulary or continue it without a gap: Hugging Face's loader
  // gives out ids in that way whatever the file says.
  void check_added_ids() const {
    std::unordered_map<std::string_view, Token> id_of_content;
    size_t next = result_.tokens.size();
    for (const AddedToken& token : result_.added) {
      if (const auto [place, is_new] = id_of_content.emplace(token.content, token.id); !is_new)
        fail(where_, ": added token \"", shown(token.content), "\" has two ids, ", place->second, " and ",
             token.id);
      const auto found = id_of_spelling_.find(token.content);
      if (found != id_of_spelling_.end()) {
        if (found->second != token.id)
          fail(where_, ": added token \"", shown(token.content), "\" has id ", token.id, ", but id ",
               found->second, " in model.vocab");
        continue;
      }
      if (static_cast<size_t>(token.id) != next)
        fail(where_, ": added token \"", shown(token.content), "\" has id ", token.id, " (expected ", next,
             ": ids go on behind model.vocab without gaps or repeats)");
      ++next;
    }
  }
};

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view json, const std::string& where) {
  JsonDocument document(json, where);
  dom::object root;
  if (document.root().get(root) != simdjson::SUCCESS)
    fail(where, ": the file is not a JSON object (not a tokenizer.json?)");
  return FileReader(where, root).read();
}

std::string byte_level_spelling(std::string_view bytes) {
  const ByteAlphabet alphabet;
  std::string spelling;
  for (const char byte : bytes) append_utf8(spelling, alphabet.of_byte[static_cast<uint8_t>(byte)]);
  return spelling;
}

std::optional<std::string> byte_level_bytes(std::string_view spelling) {
  if (!is_valid_utf8(spelling)) return std::nullopt;
  return bytes_of(ByteAlphabet{}, spelling);
}

}  // namespace ropd::text
