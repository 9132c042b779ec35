// Sequences packed one behind the other, without padding.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "records/rollout.h"

namespace ropd::model {

struct PackedBatch {
  std::vector<Token> tokens;                   // [T]
  std::vector<int32_t> positions;              // [T] within the sequence
  std::vector<int64_t> sequence_begins = {0};  // [B + 1]
  // [B] The sequence whose tokens come before those of this one; kNoPrefix: it begins at position 0.
  std::vector<int64_t> prefix_of;
  static constexpr int64_t kNoPrefix = -1;

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_positions() const {  // of the longest sequence
    return positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end()) + 1;
  }
  int64_t num_sequences() const { return static_cast<int64_t>(sequence_begins.size()) - 1; }
  int64_t length(int64_t sequence) const {
    return sequence_begins[static_cast<size_t>(sequence) + 1] -
           sequence_begins[static_cast<size_t>(sequence)];
  }
  // Appends a sequence made of two parts (prompt and response).
  void append(std::span<const Token> first, std::span<const Token> second = {});
  // Appends what goes on behind the `prefix_length` tokens of the sequence `prefix`, which may come later.
  void append_behind(int64_t prefix, int64_t prefix_length, std::span<const Token> first,
                     std::span<const Token> second = {});
  // The sequences [first, last) as a batch of their own; what they share with others is left out.
  PackedBatch part(int64_t first, int64_t last) const;
  // [B] Which sequences are prefixes of others.
  std::vector<bool> is_prefix() const;
};

// Consecutive items of at most `max_tokens` together (one at least): half-open ranges. length(i) = tokens of
// item i.
std::vector<std::pair<size_t, size_t>> pack_in_order(size_t count, int64_t max_tokens,
                                                     const std::function<int64_t(size_t)>& length);

struct PromptedResponse {
  std::span<const Token> prompt, response;
};

// What predicts the tokens of responses: prompt and response without the last token, which predicts nothing.
struct PackedResponses {
  PackedBatch batch;
  std::vector<int64_t> first_rows;  // [responses] the row that predicts the first token of each
};

// Responses to the same prompt may share the rows of all of it but the last token, which predicts for each of
// them. They are packed one behind the other then, and the shared rows of a few prompts behind all of them.
enum class Prompts { each_its_own, shared };
PackedResponses pack_responses(std::span<const PromptedResponse> responses, Prompts prompts);

// The responses by prompt, in order of its first one: runs of indices.
std::vector<std::vector<size_t>> group_by_prompt(std::span<const PromptedResponse> responses);

}  // namespace ropd::model
