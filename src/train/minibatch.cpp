#include "train/minibatch.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "distill/scoring.h"

namespace ropd::train {
namespace {

int64_t length_of(const Rollout& rollout) {
  return static_cast<int64_t>(rollout.prompt_ids.size() + rollout.response_ids.size());
}

}  // namespace

std::vector<MinibatchRange> split(size_t rollouts, uint64_t minibatch) {
  std::vector<MinibatchRange> ranges;
  size_t begin = 0;
  for (const uint64_t size : minibatch_sizes(rollouts, minibatch)) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

std::vector<size_t> batch_order(std::span<const Rollout> rollouts, const TrainConfig& config) {
  std::vector<size_t> order(rollouts.size());
  std::iota(order.begin(), order.end(), 0);
  if (!config.train.length_balanced) return order;
  // Longest first, each to the minibatch with the fewest tokens that has room.
  const auto sizes = minibatch_sizes(rollouts.size(), config.train.minibatch);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return length_of(rollouts[a]) > length_of(rollouts[b]); });
  std::vector<std::vector<size_t>> dealt(sizes.size());
  std::vector<int64_t> tokens(sizes.size(), 0);
  for (const size_t i : order) {
    size_t best = sizes.size();
    for (size_t b = 0; b < sizes.size(); ++b)
      if (dealt[b].size() < sizes[b] && (best == sizes.size() || tokens[b] < tokens[best])) best = b;
    dealt[best].push_back(i);
    tokens[best] += length_of(rollouts[i]);
  }
  order.clear();
  for (const auto& part : dealt) order.insert(order.end(), part.begin(), part.end());
  return order;
}

std::vector<Microbatch> pack_minibatch(std::span<const ScoredRollout> minibatch, const TrainConfig& config) {
  const double nominal = static_cast<double>(config.train.minibatch);
  const auto ranges =
      distill::pack_in_order(minibatch.size(), static_cast<int64_t>(config.train.microbatch_tokens),
                             [&](size_t i) { return length_of(*minibatch[i].rollout); });
  std::map<uint32_t, uint64_t> tokens_of_source;  // one entry in all unless sources are balanced
  const bool by_source = config.train.reduction == Reduction::source_balanced;
  for (const ScoredRollout& item : minibatch)
    tokens_of_source[by_source ? item.source : 0] += item.supervision->num_valid();

  std::vector<Microbatch> microbatches;
  for (const auto& [begin, end] : ranges) {
    uint64_t tokens_here = 0;
    for (size_t i = begin; i < end; ++i) tokens_here += minibatch[i].supervision->num_valid();
    Microbatch microbatch;
    for (size_t i = begin; i < end; ++i) {
      const ScoredRollout& item = minibatch[i];
      double weight;
      if (config.train.reduction == Reduction::dynamic_microbatch)
        weight = static_cast<double>(end - begin) / nominal /
                 static_cast<double>(std::max<uint64_t>(tokens_here, 1));
      else
        weight = static_cast<double>(minibatch.size()) / nominal /
                 static_cast<double>(std::max<uint64_t>(tokens_of_source[by_source ? item.source : 0], 1)) /
                 static_cast<double>(tokens_of_source.size());
      microbatch.items.push_back({item.rollout, item.supervision, static_cast<float>(weight)});
    }
    microbatches.push_back(std::move(microbatch));
  }
  return microbatches;
}

}  // namespace ropd::train
