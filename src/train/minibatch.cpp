#include "train/minibatch.h"

#include <algorithm>
#include <map>

#include "train/batch_order.h"

namespace ropd::train {

std::vector<MinibatchRange> split(size_t rollouts, uint64_t minibatch) {
  std::vector<MinibatchRange> ranges;
  size_t begin = 0;
  for (const uint64_t size : minibatch_sizes(rollouts, minibatch)) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

std::vector<uint64_t> minibatch_sizes(uint64_t responses, uint64_t minibatch) {
  std::vector<uint64_t> sizes;
  for (uint64_t done = 0; done < responses; done += sizes.back())
    sizes.push_back(std::min(minibatch, responses - done));
  return sizes;
}

std::vector<std::pair<size_t, size_t>> shard_ranges(size_t sequences, size_t shards) {
  std::vector<std::pair<size_t, size_t>> ranges;
  for (size_t s = 0; s < shards; ++s) {
    const size_t begin = s * sequences / shards, end = (s + 1) * sequences / shards;
    if (begin < end) ranges.emplace_back(begin, end);
  }
  return ranges;
}

std::vector<distill::Shard> pack_shards(std::span<const ScoredRollout> minibatch, const TrainConfig& config) {
  const Reduction reduction = config.train.reduction;
  const auto source_of = [&](const ScoredRollout& item) {
    return reduction == Reduction::source_balanced ? item.source : 0;
  };
  std::map<uint32_t, uint64_t> tokens_of_source;  // one entry in all unless sources are balanced
  for (const ScoredRollout& item : minibatch)
    tokens_of_source[source_of(item)] += item.supervision->num_valid();
  const auto token_weight = [&](std::span<const ScoredRollout> microbatch, const ScoredRollout& item) {
    double sequences = static_cast<double>(minibatch.size()), sources = 1;
    uint64_t tokens = 0;
    if (reduction == Reduction::dynamic_microbatch) {
      sequences = static_cast<double>(microbatch.size());
      for (const ScoredRollout& other : microbatch) tokens += other.supervision->num_valid();
    } else {
      tokens = tokens_of_source[source_of(item)];
      sources = static_cast<double>(tokens_of_source.size());
    }
    return static_cast<float>(sequences / static_cast<double>(config.train.minibatch) /
                              static_cast<double>(std::max<uint64_t>(tokens, 1)) / sources);
  };

  std::vector<distill::Shard> shards;
  for (const auto& [first, last] : shard_ranges(minibatch.size(), config.train.shards)) {
    const auto sequences = minibatch.subspan(first, last - first);
    distill::Shard& shard = shards.emplace_back();
    for (const auto& [begin, end] :
         model::pack_in_order(sequences.size(), static_cast<int64_t>(config.train.microbatch_tokens),
                              [&](size_t i) { return length_of(*sequences[i].rollout); })) {
      const auto microbatch = sequences.subspan(begin, end - begin);
      distill::Microbatch& packed = shard.emplace_back();
      for (const ScoredRollout& item : microbatch)
        packed.push_back({item.rollout, item.supervision, token_weight(microbatch, item)});
    }
  }
  return shards;
}

}  // namespace ropd::train
