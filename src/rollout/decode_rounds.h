// Who decodes: all threads in one step after the other, or each in steps of its own over sequences of its own.
// Results do not depend on it.
#pragma once
#include <cstdint>
#include <functional>

#include "base/crowd.h"
#include "model/execution.h"

namespace ropd::rollout {

// Rounds of decoding. Threads of a small model have sequences and steps of their own, so that none waits for
// another at the end of a step. Those of a large model share the products of one step. Before each round it looks
// whether other programs had its cores since the last one: a thread that loses its core inside of a product is waited
// for by all, so where there are sequences for most threads, those make steps of their own, too. With few sequences
// on two cores that is one thread alone, which nobody waits for and which has well over half the speed of both.
class DecodeRounds {
 public:
  using LostShare = std::function<double()>;  // of our cores to other programs since it was last asked

  explicit DecodeRounds(const model::Execution& execution, LostShare lost_share = {});  // empty = as measured
  struct Round {
    size_t num_workers = 1;  // that share the sequences out
    bool is_apart = false;   // a worker's steps stay on its thread; else threads share those of the only one
    int64_t num_steps = 1;   // of all workers together; then it is time for another look
    // Calls work(worker) for each of them, on a thread of its own.
    void run(const std::function<void(size_t worker)>& work) const;
  };
  Round next(size_t num_sequences);

 private:
  const model::Execution execution_;
  CrowdWatch watch_;
  const LostShare lost_share_;
  bool is_first_ = true;
};

}  // namespace ropd::rollout
