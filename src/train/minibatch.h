// From a scored batch, already in its order (batch_order.h), to weighted microbatches: the split into
// minibatches and shards, the three reductions, the packing (method.md sections 2 and 4).
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "distill/gradient.h"
#include "train/train_config.h"

namespace ropd::train {

// A response of an iteration with what is fixed for it.
struct ScoredRollout {
  const Rollout* rollout = nullptr;
  const distill::Supervision* supervision = nullptr;
  uint32_t source = 0;  // which part of a mixture
};

// Rollouts [begin, end) of an iteration: a minibatch.
struct MinibatchRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};
// 480, 128 -> 128 128 128 96
std::vector<MinibatchRange> split(size_t rollouts, uint64_t minibatch);

// How many responses each update of an iteration takes: 480, 128 -> 128 128 128 96.
std::vector<uint64_t> minibatch_sizes(uint64_t responses, uint64_t minibatch);

// Shard s of S has the sequences [s n / S, (s + 1) n / S), rounded down; empty ones are left out.
std::vector<std::pair<size_t, size_t>> shard_ranges(size_t sequences, size_t shards);

// Cuts a minibatch into train.shards, packs each shard in order by the token budget and gives every valid
// token its weight:
//   dynamic_microbatch   (sequences of the microbatch / nominal) / (its valid tokens)
//   minibatch_tokens     (sequences of the minibatch / nominal) / (its valid tokens)
//   source_balanced      the same, one token mean per source, each weighted 1 / number of sources
std::vector<distill::Shard> pack_shards(std::span<const ScoredRollout> minibatch, const TrainConfig& config);

}  // namespace ropd::train
