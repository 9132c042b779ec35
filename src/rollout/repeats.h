// Guesses of what a response says next, from what it has said before: long responses repeat themselves, and those
// that do not end go round in circles. Guesses run in the same step as the token they follow, where weights are read
// for few rows. What is drawn decides which of them were right, so no response depends on them.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "records/rollout.h"

namespace ropd::rollout {

// Of one sequence, which only grows. Not thread-safe.
class Repeats {
 public:
  // What may follow these tokens, at most so many: what followed where the newest of them stood before. The longer
  // the repetition already is, the more is guessed; nothing where there is none.
  std::vector<Token> guess(std::span<const Token> tokens, size_t most);

 private:
  std::unordered_map<uint64_t, size_t>
      behind_;  // hash of a few tokens -> the place behind where they last stood
  size_t num_seen_ = 0;
  size_t next_ = 0;    // the place of the token that is guessed
  size_t length_ = 0;  // so many tokens before it are the newest ones, too

  void see(std::span<const Token> tokens);
};

}  // namespace ropd::rollout
