// Byte-pair encoding: bytes of a piece are joined pair by pair, always the pair of the earliest merge,
// leftmost first, as Hugging Face's tokenizers do it. Pieces that are a token by themselves take one table
// look-up; long pieces O(n log n).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "records/rollout.h"
#include "text/tokenizer_file.h"

namespace ropd::text {

// Buffers of one encoding thread, reused between pieces.
struct BpeScratch {
  struct Symbol {
    Token id;
    int32_t previous, next;  // -1 at the ends
    bool is_live;
  };
  struct Candidate {
    uint32_t rank;
    int32_t position;
    Token result;
  };
  std::vector<Token> ids;
  std::vector<uint32_t> ranks;
  std::vector<Symbol> symbols;
  std::vector<Candidate> queue;
};

// Constant after construction; any number of threads may encode, each with its own scratch.
class Bpe {
 public:
  explicit Bpe(const TokenizerFile& file);
  // Appends the ids of one piece. Fails where a byte has no token and the file names no unknown token.
  void encode(std::vector<Token>& ids, BpeScratch& scratch, std::string_view piece) const;
  // The byte-level token of exactly these bytes.
  std::optional<Token> find(std::string_view bytes) const;
  std::string_view bytes_of(Token id) const {
    const auto index = static_cast<size_t>(id);
    return std::string_view(bytes_).substr(begin_[index], begin_[index + 1] - begin_[index]);
  }
  size_t vocab_size() const { return begin_.size() - 1; }

 private:
  struct TokenSlot {
    uint32_t tag = 0;    // upper half of the hash
    int32_t entry = -1;  // id * 2 + (the merges make this token from its bytes)
  };
  struct PairSlot {
    uint64_t pair = kNoPair;
    uint32_t rank = kNoRank;
    Token result = -1;
  };
  static constexpr uint64_t kNoPair = ~uint64_t{0};
  static constexpr uint32_t kNoRank = ~uint32_t{0};

  void build_tokens(const TokenizerFile& file);
  void build_pairs(const TokenizerFile& file);
  void mark_whole_tokens();
  size_t token_slot(std::string_view bytes) const;
  const PairSlot& pair_slot(Token left, Token right) const;
  void split_bytes(std::vector<Token>& ids, std::string_view piece) const;
  void merge_short(BpeScratch& scratch) const;
  void merge_long(BpeScratch& scratch) const;
  void merge(BpeScratch& scratch, std::string_view piece) const;

  // constant after construction
  std::string bytes_;          // all tokens one behind the other
  std::vector<size_t> begin_;  // [V + 1] in bytes_
  std::array<Token, 256> byte_ids_;
  std::vector<TokenSlot> token_slots_;  // [power of two] open addressing
  std::vector<PairSlot> pair_slots_;    // [power of two]
  size_t longest_token_bytes_ = 0;
  bool has_unique_results_ = true;  // no token is the result of two merges
  bool ignores_merges_ = false, fuses_unknown_ = false;
  std::optional<Token> unknown_;
};

}  // namespace ropd::text
