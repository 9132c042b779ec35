// The tokenizer of a Hugging Face model directory: byte-level BPE, ids equal to the official library's.
//   text -> added tokens cut out -> NFC -> split regex -> bytes -> merges -> ids
//   ids -> bytes -> UTF-8 with U+FFFD
// Post-processors are not applied: nothing is put before or behind the ids of a text (chat templates write
// BOS themselves).
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "records/rollout.h"
#include "text/tokenizer_file.h"

namespace ropd::text {

// Ids with the place of each in the text that was encoded, which is the NFC form of the caller's text.
struct OffsetEncoding {
  std::string text;           // normalised; equal to the input where that is valid UTF-8 in NFC
  std::vector<Token> ids;     // [N]
  std::vector<size_t> begin;  // [N] byte offsets in `text`; tokens may cut a character
  std::vector<size_t> end;    // [N]
};

// Constant after loading; every function is thread-safe. Copies share one vocabulary.
class Tokenizer {
 public:
  // A model directory with tokenizer.json, or the file itself.
  static Tokenizer load(const Path& model_directory_or_file);
  // `where` begins every error text.
  static Tokenizer parse(std::string_view tokenizer_json, const std::string& where);
  ~Tokenizer();
  Tokenizer(const Tokenizer&);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(const Tokenizer&);
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Broken UTF-8 is read as U+FFFD. With parse_special=false special tokens inside the text are ordinary
  // characters (text of strangers); added tokens that are not special are always recognised, as in the
  // official library.
  [[nodiscard]] std::vector<Token> encode(std::string_view text, bool parse_special = true) const;
  // The first max_tokens ids of encode(text), without the work behind them: a response cut to a budget. The
  // cut text is decode() of the result; the text exceeds the budget if and only if encode_first(text, n + 1)
  // has n + 1 ids.
  [[nodiscard]] std::vector<Token> encode_first(std::string_view text, size_t max_tokens,
                                                bool parse_special = true) const;
  [[nodiscard]] OffsetEncoding encode_with_offsets(std::string_view text, bool parse_special = true) const;

  // Bytes that are not UTF-8 become U+FFFD, one for each broken sequence. Ids outside the vocabulary (padding
  // rows of a model) give nothing.
  [[nodiscard]] std::string decode(std::span<const Token> ids, bool skip_special = true) const;
  // The bytes a token stands for, special or not; empty outside the vocabulary. Lives as long as the
  // tokenizer.
  [[nodiscard]] std::string_view token_bytes(Token id) const;
  // The token of exactly this content: an added token's text, or the bytes of a token of the vocabulary.
  [[nodiscard]] std::optional<Token> token_id(std::string_view content) const;
  [[nodiscard]] bool is_special(Token id) const;
  [[nodiscard]] bool is_added(Token id) const;
  [[nodiscard]] size_t vocab_size() const;  // with added tokens
  [[nodiscard]] const std::vector<AddedToken>& added_tokens() const;
  // SHA-256 of all that determines ids: vocabulary, merges, added tokens, normaliser, split rule. Equal
  // content gives an equal fingerprint whatever the file's spelling.
  [[nodiscard]] const std::string& fingerprint() const;

 private:
  struct Tables;
  explicit Tokenizer(std::shared_ptr<const Tables> tables);
  std::shared_ptr<const Tables> tables_;
};

}  // namespace ropd::text
