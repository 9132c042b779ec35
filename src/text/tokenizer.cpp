#include "text/tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace ropd::text {

struct Tokenizer::Tables {
  Tables(TokenizerFile&& file, const std::string& where);
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  // constant after construction
  bool normalizes;
  Pretokenizer pretokenizer;
  Bpe bpe;
  std::vector<AddedToken> added;            // by id
  std::vector<const AddedToken*> added_of;  // [V] the added token of an id, or null
  AddedTokenMatcher raw_matcher, normalized_matcher;
  // Tokens found by their content rather than by bytes: added ones, and those outside the byte alphabet.
  std::unordered_map<std::string, Token> by_content;
  std::string fingerprint;

 private:
  AddedTokenMatcher matcher(bool is_normalized) const;
};

namespace {

// Everything ids depend on, as one unambiguous text: lengths before strings, numbers in decimal.
std::string fingerprint_of(const TokenizerFile& file) {
  std::string content = "ropd tokenizer 1\n";
  const auto number = [&](auto value) { content.append(std::to_string(value)).push_back(' '); };
  number(static_cast<int>(file.normalizes_nfc));
  number(static_cast<int>(file.split));
  number(static_cast<int>(file.ignores_merges));
  number(file.unknown.value_or(-1));
  number(static_cast<int>(file.fuses_unknown));
  number(file.tokens.size());
  for (size_t id = 0; id < file.tokens.size(); ++id) {
    number(file.tokens[id].size() * 2 + file.is_byte_level[id]);
    content += file.tokens[id];
  }
  number(file.merges.size());
  for (const Merge& merge : file.merges) {
    number(merge.left);
    number(merge.right);
  }
  for (const AddedToken& token : file.added) {
    number(token.id);
    number(token.is_special | token.is_single_word << 1 | token.strips_left << 2 | token.strips_right << 3 |
           token.is_normalized << 4);
    number(token.content.size());
    content += token.content;
  }
  return sha256(std::string_view(content));
}

}  // namespace

Tokenizer::Tables::Tables(TokenizerFile&& file, const std::string& where)
    : normalizes(file.normalizes_nfc),
      pretokenizer(file.split),
      bpe(file),
      fingerprint(fingerprint_of(file)) {
  added = std::move(file.added);
  size_t size = file.tokens.size();
  if (!added.empty()) size = std::max(size, static_cast<size_t>(added.back().id) + 1);
  added_of.assign(size, nullptr);
  for (const AddedToken& token : added) added_of[static_cast<size_t>(token.id)] = &token;
  raw_matcher = matcher(false);
  normalized_matcher = matcher(true);
  for (const AddedToken& token : added) by_content.emplace(token.content, token.id);
  for (size_t id = 0; id < file.tokens.size(); ++id)
    if (!file.is_byte_level[id]) by_content.emplace(std::move(file.tokens[id]), static_cast<Token>(id));
  if (size > static_cast<size_t>(INT32_MAX) / 2) fail(where, ": ", size, " tokens are too many");
}

AddedTokenMatcher Tokenizer::Tables::matcher(bool is_normalized) const {
  std::vector<std::string> contents;
  std::vector<const AddedToken*> tokens;
  for (const AddedToken& token : added) {
    if (token.is_normalized != is_normalized) continue;
    contents.push_back(is_normalized && normalizes ? normalize_nfc(token.content) : token.content);
    tokens.push_back(&token);
  }
  return AddedTokenMatcher(std::move(contents), std::move(tokens));
}

namespace {

// One encoding of one text: walks it once, appends ids and, on request, offsets; stops when there are enough
// ids.
class Encoder {
 public:
  struct Rules {
    const Pretokenizer& pretokenizer;
    const Bpe& bpe;
    const AddedTokenMatcher& raw_matcher;
    const AddedTokenMatcher& normalized_matcher;
    bool normalizes;
  };
  Encoder(const Rules& rules, bool parse_special, size_t max_tokens, OffsetEncoding* offsets)
      : rules_(rules), parse_special_(parse_special), max_tokens_(max_tokens), offsets_(offsets) {}

  std::vector<Token> encode(std::string_view text) {
    if (max_tokens_ == 0) return {};
    if (is_valid_utf8(text)) {
      encode_raw(text);
    } else {
      encode_raw(repair_utf8(text));
    }
    if (ids_.size() > max_tokens_) ids_.resize(max_tokens_);
    return std::move(ids_);
  }

 private:
  bool is_done() const { return ids_.size() >= max_tokens_; }

  // Calls plain(text between) and special(token, its text) in order.
  void split(const AddedTokenMatcher& matcher, std::string_view text, auto&& plain) {
    std::vector<AddedTokenMatch> matches;
    matcher.find_all(matches, text, parse_special_);
    size_t done = 0, covered = 0;  // covered: what offsets have been given for
    for (const AddedTokenMatch& match : matches) {
      if (match.begin > done) plain(text.substr(done, match.begin - done));
      if (is_done()) return;
      covered = std::max(covered, match.begin);
      push_added(match.token->id, text.substr(covered, std::max(match.end, covered) - covered));
      covered = std::max(covered, match.end);
      done = match.end;
    }
    if (done < text.size()) plain(text.substr(done));
  }

  void encode_raw(std::string_view text) {
    split(rules_.raw_matcher, text, [&](std::string_view plain) {
      if (is_done()) return;
      if (!rules_.normalizes || is_nfc(plain))
        encode_normalized(plain);
      else
        encode_normalized(normalize_nfc(plain));
    });
  }

  void encode_normalized(std::string_view text) {
    if (rules_.normalized_matcher.is_empty()) return encode_plain(text);
    split(rules_.normalized_matcher, text, [&](std::string_view plain) { encode_plain(plain); });
  }

  void encode_plain(std::string_view text) {
    for (size_t begin = 0; begin < text.size() && !is_done();) {
      const size_t end = rules_.pretokenizer.piece_end(text, begin);
      rules_.bpe.encode(ids_, scratch_, text.substr(begin, end - begin));
      if (offsets_ != nullptr) push_offsets(text.substr(begin, end - begin));
      begin = end;
    }
  }

  void push_added(Token id, std::string_view text) {
    ids_.push_back(id);
    if (offsets_ == nullptr) return;
    offsets_->begin.push_back(offsets_->text.size());
    offsets_->text += text;
    offsets_->end.push_back(offsets_->text.size());
  }

  // Offsets of the ids the last piece has added. An unknown token stands for the bytes it replaced, which its
  // own content does not tell: such a piece is given to its ids as a whole.
  void push_offsets(std::string_view piece) {
    const size_t base = offsets_->text.size();
    size_t length = 0;
    for (size_t i = offsets_->end.size(); i < ids_.size(); ++i) length += rules_.bpe.bytes_of(ids_[i]).size();
    for (size_t i = offsets_->end.size(), at = base; i < ids_.size(); ++i) {
      const size_t end =
          length == piece.size() ? at + rules_.bpe.bytes_of(ids_[i]).size() : base + piece.size();
      offsets_->begin.push_back(at);
      offsets_->end.push_back(end);
      if (length == piece.size()) at = end;
    }
    offsets_->text += piece;
  }

  const Rules& rules_;
  bool parse_special_;
  size_t max_tokens_;
  OffsetEncoding* offsets_;
  std::vector<Token> ids_;
  BpeScratch scratch_;
};

constexpr size_t kNoLimit = ~size_t{0};

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(const Tokenizer&) = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(const Tokenizer&) = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const Path& model_directory_or_file) {
  const bool is_directory = std::filesystem::is_directory(model_directory_or_file);
  const Path file = is_directory ? model_directory_or_file / "tokenizer.json" : model_directory_or_file;
  const MappedFile mapped(file);
  return parse(mapped.text(), file.string());
}

Tokenizer Tokenizer::parse(std::string_view tokenizer_json, const std::string& where) {
  return Tokenizer(std::make_shared<const Tables>(parse_tokenizer_file(tokenizer_json, where), where));
}

std::vector<Token> Tokenizer::encode(std::string_view text, bool parse_special) const {
  return encode_first(text, kNoLimit, parse_special);
}

std::vector<Token> Tokenizer::encode_first(std::string_view text, size_t max_tokens,
                                           bool parse_special) const {
  const Encoder::Rules rules{tables_->pretokenizer, tables_->bpe, tables_->raw_matcher,
                             tables_->normalized_matcher, tables_->normalizes};
  return Encoder(rules, parse_special, max_tokens, nullptr).encode(text);
}

OffsetEncoding Tokenizer::encode_with_offsets(std::string_view text, bool parse_special) const {
  const Encoder::Rules rules{tables_->pretokenizer, tables_->bpe, tables_->raw_matcher,
                             tables_->normalized_matcher, tables_->normalizes};
  OffsetEncoding result;
  result.ids = Encoder(rules, parse_special, kNoLimit, &result).encode(text);
  return result;
}

std::string Tokenizer::decode(std::span<const Token> ids, bool skip_special) const {
  std::string bytes;
  for (const Token id : ids)
    if (!skip_special || !is_special(id)) bytes += token_bytes(id);
  return is_valid_utf8(bytes) ? bytes : repair_utf8(bytes);
}

std::string_view Tokenizer::token_bytes(Token id) const {
  if (id < 0 || static_cast<size_t>(id) >= tables_->added_of.size()) return {};
  const AddedToken* added = tables_->added_of[static_cast<size_t>(id)];
  return added != nullptr ? std::string_view(added->content) : tables_->bpe.bytes_of(id);
}

std::optional<Token> Tokenizer::token_id(std::string_view content) const {
  const auto found = tables_->by_content.find(std::string(content));
  return found != tables_->by_content.end() ? std::optional(found->second) : tables_->bpe.find(content);
}

bool Tokenizer::is_added(Token id) const {
  return id >= 0 && static_cast<size_t>(id) < tables_->added_of.size() &&
         tables_->added_of[static_cast<size_t>(id)] != nullptr;
}

bool Tokenizer::is_special(Token id) const {
  return is_added(id) && tables_->added_of[static_cast<size_t>(id)]->is_special;
}

size_t Tokenizer::vocab_size() const { return tables_->added_of.size(); }

const std::vector<AddedToken>& Tokenizer::added_tokens() const { return tables_->added; }

const std::string& Tokenizer::fingerprint() const { return tables_->fingerprint; }

}  // namespace ropd::text
