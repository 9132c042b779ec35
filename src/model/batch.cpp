#include "model/batch.h"

#include <algorithm>

namespace ropd::model {

void PackedBatch::append(std::span<const Token> first, std::span<const Token> second) {
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.insert(tokens.end(), second.begin(), second.end());
  for (size_t i = 0; i < first.size() + second.size(); ++i) positions.push_back(static_cast<int32_t>(i));
  sequence_begins.push_back(num_tokens());
}

PackedBatch PackedBatch::part(int64_t first, int64_t last) const {
  const int64_t begin = sequence_begins[static_cast<size_t>(first)],
                end = sequence_begins[static_cast<size_t>(last)];
  PackedBatch result;
  result.tokens.assign(tokens.begin() + begin, tokens.begin() + end);
  result.positions.assign(positions.begin() + begin, positions.begin() + end);
  for (int64_t s = first + 1; s <= last; ++s)
    result.sequence_begins.push_back(sequence_begins[static_cast<size_t>(s)] - begin);
  return result;
}

std::vector<int64_t> cut_evenly(const PackedBatch& batch, int64_t parts) {
  constexpr int64_t kHalved = 4;
  const int64_t halves = 2 * parts, first_halved = parts > kHalved ? halves - 2 * kHalved : halves;
  std::vector<int64_t> cuts = {0};
  const auto begins = std::span(batch.sequence_begins);
  for (int64_t at = 2; at < halves; at += at < first_halved ? 2 : 1) {
    // The boundary nearest to the share.
    const int64_t wanted = batch.num_tokens() * at / halves;
    const auto above = std::lower_bound(begins.begin(), begins.end() - 1, wanted);
    const bool is_below_nearer = above != begins.begin() && wanted - above[-1] < *above - wanted;
    const int64_t cut = above - begins.begin() - (is_below_nearer ? 1 : 0);
    if (cut > cuts.back() && cut < batch.num_sequences()) cuts.push_back(cut);
  }
  if (batch.num_sequences() > 0) cuts.push_back(batch.num_sequences());
  return cuts;
}

}  // namespace ropd::model
