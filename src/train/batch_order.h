// Which responses of an iteration share a minibatch (method.md section 4), as an order that the split into
// consecutive minibatches and shards then cuts:
//   recorded         as they were sampled or stored: a minibatch is so many consecutive responses
//   ranks            as a data-parallel trainer divides them: of n responses rank r of S owns the slice
//                    [r n / S, (r + 1) n / S), minibatch m is the union of every rank's m-th piece of
//                    minibatch / S responses, and its shard r is rank r's piece
//   ranks_balanced   the same behind the public trainer's length balancing: the ranks' shares come from an
//                    equal-size partition by workload, inside a rank ascending by workload, even positions
//                    in order, then odd ones in reverse
// The last two want responses and minibatch divisible by the shards; the configuration sees to it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "records/rollout.h"
#include "train/train_config.h"

namespace ropd::train {

// Prompt and response.
int64_t length_of(const Rollout& rollout);

// What a sequence of so many tokens costs a transformer of 7B, up to a factor: 24576 L + L^2.
int64_t workload(int64_t length);

// Indices of `work` in `parts` groups of equal size and about equal sums, by the largest differencing method
// (Karmarkar and Karp): runs of `parts` neighbours in ascending order of (work, index) are the first
// arrangements of groups, each of one index; the two arrangements that are spread widest become one, the
// heaviest group of the first together with the lightest of the second and so on, until one is left. Its
// groups come heaviest first, each with its indices ascending. work.size() must be a multiple of parts.
std::vector<std::vector<size_t>> equal_size_partition(std::span<const int64_t> work, size_t parts);

// The order in which an iteration's responses are split: order[i] is the response at place i.
std::vector<size_t> batch_order(std::span<const Rollout> rollouts, const OptimizationConfig& config);

}  // namespace ropd::train
