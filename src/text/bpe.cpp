#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <iomanip>

#include "base/error.h"

namespace ropd::text {

namespace {

constexpr size_t kShortPieceBytes = 64;  // up to here a linear search for the next merge beats a heap

uint64_t mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0x9E3779B97F4A7C15u;
  value ^= value >> 29;
  return value;
}

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = bytes.size() * 0xD6E8FEB86659FD93u;
  size_t index = 0;
  for (; index + 8 <= bytes.size(); index += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + index, 8);
    hash = mix(hash ^ word) * 0xBF58476D1CE4E5B9u;
  }
  uint64_t word = 0;
  if (const size_t rest = bytes.size() - index; rest > 0) std::memcpy(&word, bytes.data() + index, rest);
  return mix(mix(hash ^ word) * 0xBF58476D1CE4E5B9u);
}

uint64_t pair_of(Token left, Token right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

}  // namespace

Bpe::Bpe(const TokenizerFile& file)
    : ignores_merges_(file.ignores_merges), fuses_unknown_(file.fuses_unknown), unknown_(file.unknown) {
  build_tokens(file);
  build_pairs(file);
  mark_whole_tokens();
}

void Bpe::build_tokens(const TokenizerFile& file) {
  const size_t count = file.tokens.size();
  begin_.reserve(count + 1);
  begin_.push_back(0);
  for (const std::string& token : file.tokens) {
    bytes_ += token;
    begin_.push_back(bytes_.size());
  }
  token_slots_.assign(std::bit_ceil(count * 2 + 1), TokenSlot{});
  byte_ids_.fill(-1);
  for (size_t id = 0; id < count; ++id) {
    if (!file.is_byte_level[id]) continue;
    const std::string_view token = bytes_of(static_cast<Token>(id));
    TokenSlot& slot = token_slots_[token_slot(token)];
    assert(slot.entry < 0);  // the file reader refuses two tokens of one spelling
    slot = {static_cast<uint32_t>(hash_bytes(token) >> 32), static_cast<int32_t>(id * 2)};
    longest_token_bytes_ = std::max(longest_token_bytes_, token.size());
    if (token.size() == 1) byte_ids_[static_cast<uint8_t>(token[0])] = static_cast<Token>(id);
  }
}

void Bpe::build_pairs(const TokenizerFile& file) {
  pair_slots_.assign(std::bit_ceil(file.merges.size() * 2 + 1), PairSlot{});
  std::vector<uint8_t> is_result(file.tokens.size(), 0);
  for (size_t rank = 0; rank < file.merges.size(); ++rank) {
    const Merge& merge = file.merges[rank];
    auto& slot = const_cast<PairSlot&>(pair_slot(merge.left, merge.right));
    // A pair listed twice keeps its last rank, as in the official loader.
    if (slot.pair == kNoPair && is_result[static_cast<size_t>(merge.result)]) has_unique_results_ = false;
    is_result[static_cast<size_t>(merge.result)] = 1;
    slot = {pair_of(merge.left, merge.right), static_cast<uint32_t>(rank), merge.result};
  }
}

// A piece may skip the merges only if they would give the same single token; some vocabularies hold tokens
// that no sequence of merges reaches.
void Bpe::mark_whole_tokens() {
  BpeScratch scratch;
  for (TokenSlot& slot : token_slots_) {
    if (slot.entry < 0) continue;
    const Token id = slot.entry / 2;
    const std::string_view token = bytes_of(id);
    if (!ignores_merges_) {
      const bool has_all_bytes = std::all_of(
          token.begin(), token.end(), [&](char byte) { return byte_ids_[static_cast<uint8_t>(byte)] >= 0; });
      if (!has_all_bytes) continue;
      merge(scratch, token);
      if (scratch.ids.size() != 1 || scratch.ids[0] != id) continue;
    }
    slot.entry |= 1;
  }
}

size_t Bpe::token_slot(std::string_view bytes) const {
  const uint64_t hash = hash_bytes(bytes);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = token_slots_.size() - 1;
  for (size_t index = hash & mask;; index = (index + 1) & mask) {
    const TokenSlot& slot = token_slots_[index];
    if (slot.entry < 0 || (slot.tag == tag && bytes_of(slot.entry / 2) == bytes)) return index;
  }
}

const Bpe::PairSlot& Bpe::pair_slot(Token left, Token right) const {
  const uint64_t pair = pair_of(left, right);
  const size_t mask = pair_slots_.size() - 1;
  for (size_t index = (mix(pair) * 0x94D049BB133111EBu >> 20) & mask;; index = (index + 1) & mask) {
    const PairSlot& slot = pair_slots_[index];
    if (slot.pair == pair || slot.pair == kNoPair) return slot;
  }
}

std::optional<Token> Bpe::find(std::string_view bytes) const {
  if (bytes.size() > longest_token_bytes_) return std::nullopt;
  const TokenSlot& slot = token_slots_[token_slot(bytes)];
  if (slot.entry < 0) return std::nullopt;
  return slot.entry / 2;
}

void Bpe::split_bytes(std::vector<Token>& ids, std::string_view piece) const {
  ids.clear();
  bool was_unknown = false;
  for (const char byte : piece) {
    const Token id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id < 0 && !unknown_)
      fail("the tokenizer has no token for byte 0x", std::hex, std::setw(2), std::setfill('0'),
           static_cast<int>(static_cast<uint8_t>(byte)), " of \"", piece.substr(0, 40),
           "\" and names no unknown token (text outside the tokenizer's alphabet)");
    if (id < 0 && was_unknown && fuses_unknown_) continue;
    was_unknown = id < 0;
    ids.push_back(id < 0 ? *unknown_ : id);
  }
}

// Linear search for the earliest merge; ties go to the left because only a smaller rank replaces the best.
void Bpe::merge_short(BpeScratch& scratch) const {
  auto& ids = scratch.ids;
  auto& ranks = scratch.ranks;
  const auto rank_at = [&](size_t index) { return pair_slot(ids[index], ids[index + 1]).rank; };
  ranks.resize(ids.size());
  for (size_t i = 0; i + 1 < ids.size(); ++i) ranks[i] = rank_at(i);
  while (ids.size() > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < ids.size(); ++i)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == kNoRank) break;
    ids[best] = pair_slot(ids[best], ids[best + 1]).result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(best));
    if (best + 1 < ids.size()) ranks[best] = rank_at(best);
    if (best > 0) ranks[best - 1] = rank_at(best - 1);
  }
}

// A heap of candidates with stale ones skipped when they come up; the same test for staleness as the official
// library, so that vocabularies with two merges of one result agree too.
void Bpe::merge_long(BpeScratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  const auto is_later = [](const BpeScratch::Candidate& left, const BpeScratch::Candidate& right) {
    return left.rank != right.rank ? left.rank > right.rank : left.position > right.position;
  };
  const auto offer = [&](int32_t position) {
    const auto& symbol = symbols[static_cast<size_t>(position)];
    if (symbol.next < 0) return;
    const PairSlot& slot = pair_slot(symbol.id, symbols[static_cast<size_t>(symbol.next)].id);
    if (slot.rank == kNoRank) return;
    queue.push_back({slot.rank, position, slot.result});
    std::push_heap(queue.begin(), queue.end(), is_later);
  };
  const auto count = static_cast<int32_t>(scratch.ids.size());
  symbols.clear();
  queue.clear();
  for (int32_t i = 0; i < count; ++i)
    symbols.push_back({scratch.ids[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1, true});
  for (int32_t i = 0; i < count; ++i) offer(i);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), is_later);
    const BpeScratch::Candidate top = queue.back();
    queue.pop_back();
    auto& left = symbols[static_cast<size_t>(top.position)];
    if (!left.is_live || left.next < 0) continue;
    auto& right = symbols[static_cast<size_t>(left.next)];
    if (pair_slot(left.id, right.id).result != top.result) continue;
    left.id = top.result;
    left.next = right.next;
    right.is_live = false;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = top.position;
    if (left.previous >= 0) offer(left.previous);
    offer(top.position);
  }
  scratch.ids.clear();
  for (const auto& symbol : symbols)
    if (symbol.is_live) scratch.ids.push_back(symbol.id);
}

// Leaves the ids of the piece in scratch.ids.
void Bpe::merge(BpeScratch& scratch, std::string_view piece) const {
  split_bytes(scratch.ids, piece);
  if (scratch.ids.size() <= kShortPieceBytes && has_unique_results_)
    merge_short(scratch);
  else
    merge_long(scratch);
}

void Bpe::encode(std::vector<Token>& ids, BpeScratch& scratch, std::string_view piece) const {
  if (piece.size() <= longest_token_bytes_) {
    const TokenSlot& slot = token_slots_[token_slot(piece)];
    if (slot.entry >= 0 && (slot.entry & 1) != 0) {
      ids.push_back(slot.entry / 2);
      return;
    }
  }
  merge(scratch, piece);
  ids.insert(ids.end(), scratch.ids.begin(), scratch.ids.end());
}

}  // namespace ropd::text
