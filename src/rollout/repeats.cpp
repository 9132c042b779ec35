#include "rollout/repeats.h"

#include <algorithm>

namespace ropd::rollout {
namespace {

constexpr size_t kFewest = 3;       // repeated tokens that are worth a guess
constexpr size_t kLookedBack = 16;  // how far the length of a repetition is counted where it is found

uint64_t hash_of(std::span<const Token> tokens) {
  uint64_t hash = 0;
  for (const Token token : tokens) hash = (hash + static_cast<uint64_t>(token) + 1) * 0x9e3779b97f4a7c15u;
  return hash;
}

// How many of the last tokens of both are the same.
size_t common_end(std::span<const Token> a, std::span<const Token> b) {
  const size_t most = std::min({a.size(), b.size(), kLookedBack});
  size_t count = 0;
  while (count < most && a[a.size() - 1 - count] == b[b.size() - 1 - count]) ++count;
  return count;
}

}  // namespace

std::vector<Token> Repeats::guess(std::span<const Token> tokens, size_t most) {
  while (num_seen_ < tokens.size()) see(tokens.first(num_seen_ + 1));
  std::vector<Token> guesses(std::min(most, length_));
  // A circle shorter than the guesses goes round in them, too.
  for (size_t i = 0; i < guesses.size(); ++i) guesses[i] = tokens[next_ + i % (tokens.size() - next_)];
  return guesses;
}

// The last one is new.
void Repeats::see(std::span<const Token> tokens) {
  num_seen_ = tokens.size();
  const bool goes_on = length_ > 0 && tokens[next_] == tokens.back();
  length_ = goes_on ? length_ + 1 : 0;
  next_ += goes_on ? 1 : 0;
  if (tokens.size() < kFewest) return;
  size_t& place = behind_[hash_of(tokens.last(kFewest))];
  if (!goes_on && place > 0) {
    length_ = common_end(tokens.first(place), tokens);
    if (length_ < kFewest) length_ = 0;  // another text of the same hash
    next_ = place;
  }
  place = tokens.size();
}

}  // namespace ropd::rollout
