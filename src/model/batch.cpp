#include "model/batch.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace ropd::model {

void PackedBatch::append(std::span<const Token> first, std::span<const Token> second) {
  append_behind(kNoPrefix, 0, first, second);
}

void PackedBatch::append_behind(int64_t prefix, int64_t prefix_length, std::span<const Token> first,
                                std::span<const Token> second) {
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.insert(tokens.end(), second.begin(), second.end());
  for (size_t i = 0; i < first.size() + second.size(); ++i)
    positions.push_back(static_cast<int32_t>(prefix_length + static_cast<int64_t>(i)));
  sequence_begins.push_back(num_tokens());
  prefix_of.push_back(prefix);
}

PackedBatch PackedBatch::part(int64_t first, int64_t last) const {
  const int64_t begin = sequence_begins[static_cast<size_t>(first)],
                end = sequence_begins[static_cast<size_t>(last)];
  PackedBatch result;
  result.tokens.assign(tokens.begin() + begin, tokens.begin() + end);
  result.positions.assign(positions.begin() + begin, positions.begin() + end);
  for (int64_t s = first + 1; s <= last; ++s)
    result.sequence_begins.push_back(sequence_begins[static_cast<size_t>(s)] - begin);
  result.prefix_of.assign(static_cast<size_t>(last - first), kNoPrefix);
  return result;
}

std::vector<bool> PackedBatch::is_prefix() const {
  std::vector<bool> result(static_cast<size_t>(num_sequences()), false);
  for (const int64_t prefix : prefix_of)
    if (prefix != kNoPrefix) result[static_cast<size_t>(prefix)] = true;
  return result;
}

std::vector<std::pair<size_t, size_t>> pack_in_order(size_t count, int64_t max_tokens,
                                                     const std::function<int64_t(size_t)>& length) {
  std::vector<std::pair<size_t, size_t>> ranges;
  int64_t tokens = 0;
  for (size_t i = 0; i < count; ++i) {
    if (ranges.empty() || tokens + length(i) > max_tokens) {
      ranges.emplace_back(i, i);
      tokens = 0;
    }
    tokens += length(i);
    ranges.back().second = i + 1;
  }
  return ranges;
}

std::vector<std::vector<size_t>> group_by_prompt(std::span<const PromptedResponse> responses) {
  std::vector<std::vector<size_t>> groups;
  std::unordered_map<std::string_view, size_t> group_of;  // by the bytes of the prompt
  for (size_t i = 0; i < responses.size(); ++i) {
    const auto bytes = std::as_bytes(responses[i].prompt);
    const std::string_view key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto [found, is_new] = group_of.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(i);
  }
  return groups;
}

PackedResponses pack_responses(std::span<const PromptedResponse> responses, Prompts prompts) {
  // Prompts whose shared rows are packed together: as few rows as one has are not worth reading all weights.
  constexpr size_t kSharedRowsTogether = 192;
  PackedResponses packed;
  PackedBatch& batch = packed.batch;
  packed.first_rows.resize(responses.size());
  const auto but_last = [](std::span<const Token> tokens) {
    return tokens.first(tokens.size() - (tokens.empty() ? 0 : 1));
  };
  const auto append_alone = [&](size_t i) {
    const auto& [prompt, response] = responses[i];
    packed.first_rows[i] = batch.num_tokens() + static_cast<int64_t>(prompt.size()) - 1;
    batch.append(prompt, but_last(response));
  };
  if (prompts == Prompts::each_its_own) {
    for (size_t i = 0; i < responses.size(); ++i) append_alone(i);
    return packed;
  }

  std::vector<std::vector<size_t>> sharing;  // groups that wait for their shared rows to be packed
  size_t shared_rows = 0, num_sharing = 0;
  const auto append_sharing = [&] {
    int64_t prefix = batch.num_sequences() + static_cast<int64_t>(num_sharing);
    for (const std::vector<size_t>& group : sharing) {
      for (const size_t i : group) {
        const auto& [prompt, response] = responses[i];
        packed.first_rows[i] = batch.num_tokens();
        batch.append_behind(prefix, static_cast<int64_t>(prompt.size()) - 1, prompt.last(1),
                            but_last(response));
      }
      ++prefix;
    }
    for (const std::vector<size_t>& group : sharing) batch.append(but_last(responses[group.front()].prompt));
    sharing.clear();
    shared_rows = num_sharing = 0;
  };
  for (std::vector<size_t>& group : group_by_prompt(responses)) {
    const size_t rows = but_last(responses[group.front()].prompt).size();
    if (group.size() == 1 || rows == 0) {
      for (const size_t i : group) append_alone(i);
      continue;
    }
    num_sharing += group.size();
    sharing.push_back(std::move(group));
    shared_rows += rows;
    if (shared_rows >= kSharedRowsTogether) append_sharing();
  }
  append_sharing();
  return packed;
}

}  // namespace ropd::model
