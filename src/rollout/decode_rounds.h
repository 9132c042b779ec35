// Who decodes: all threads in one step after the other, or each in steps of its own over sequences of its own.
// Results do not depend on it.
#pragma once
#include <cstdint>
#include <functional>

#include "base/crowd.h"
#include "model/execution.h"

namespace ropd::rollout {

// How many threads share so many sequences out and decode, each its own, so that none waits for another at
// the end of a step. 1 for a large model or few sequences: all threads share the products of one step. Beside
// busy programs a large model, too, where there are sequences for most threads: one that loses its core inside
// of a product is waited for by all.
size_t decode_workers(const model::Execution& execution, size_t num_sequences, bool is_crowded = false);

// Rounds of decoding. A large model looks before each whether other programs had its cores since the last one.
class DecodeRounds {
 public:
  using LostShare = std::function<double()>;  // of our cores to other programs since it was last asked

  explicit DecodeRounds(const model::Execution& execution, LostShare lost_share = {});  // empty = as measured
  struct Round {
    size_t num_workers = 1;
    int64_t num_steps = 1;  // of all workers together; then it is time for another look
  };
  Round next(size_t num_sequences);

 private:
  const model::Execution execution_;
  CrowdWatch watch_;
  const LostShare lost_share_;
  bool is_first_ = true;
};

}  // namespace ropd::rollout
