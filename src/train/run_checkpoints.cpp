#include "train/run_checkpoints.h"

#include <utility>

#include "base/stopwatch.h"

namespace ropd::train {

RunCheckpoints::RunCheckpoints(io::CheckpointStore& store, io::Retention retention, bool is_alone)
    : store_(store), retention_(std::move(retention)), is_alone_(is_alone) {}

void RunCheckpoints::begin(uint64_t step, Fill fill) {
  wait();
  timed(seconds_.waiting, [&] {
    if (!is_alone_) timed(writing_, [&] { fill(store_.begin(step)); });
    background_.begin([this, step, fill = std::move(fill)] {
      timed(writing_, [&] {
        if (is_alone_) fill(store_.begin(step));
        store_.complete(step, retention_);
      });
    });
  });
  last_step_ = step;
}

void RunCheckpoints::wait() {
  timed(seconds_.waiting, [&] { background_.wait(); });
  seconds_.writing += std::exchange(writing_, 0);
}

RunCheckpoints::Seconds RunCheckpoints::take_seconds() { return std::exchange(seconds_, {}); }

}  // namespace ropd::train
