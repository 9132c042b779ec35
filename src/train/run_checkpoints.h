// The checkpoints of a run, written beside what comes next: serialising, SHA-256, fsync and renames happen on a
// thread of their own while the next iteration samples, scores and takes its first gradient. Weights and moments
// are read where they lie, so there is no second copy: whoever is about to change them waits first.
#pragma once
#include <functional>
#include <optional>

#include "base/background.h"
#include "io/checkpoint.h"
#include "io/run_directory.h"

namespace ropd::train {

// Owned and called by one thread; ends when what was begun is written.
class RunCheckpoints {
 public:
  // Writes the content into a folder; alive and unchanged until wait() has returned.
  using Fill = std::function<void(const Path& folder)>;

  // The store must outlive it. With is_alone everything is written beside; where other ranks have a part of the
  // content, and answer only while nothing else is asked of them, it is filled at once and the rest (SHA-256,
  // fsync, renames, retention) is done beside.
  RunCheckpoints(io::CheckpointStore& store, io::Retention retention, bool is_alone);

  // Waits for the one before.
  void begin(uint64_t step, Fill fill);
  // Until the last one is durable and complete, retention included. Throws why it is not.
  void wait();
  // The step of the last one that was begun, or that was there.
  std::optional<uint64_t> last_step() const { return last_step_; }
  void set_last_step(uint64_t step) { last_step_ = step; }
  // Since this was last asked.
  struct Seconds {
    double waiting = 0;  // that callers have spent in here
    double writing = 0;  // that checkpoints took, those that were waited for
  };
  Seconds take_seconds();

 private:
  io::CheckpointStore& store_;
  const io::Retention retention_;
  const bool is_alone_;
  std::optional<uint64_t> last_step_;
  Seconds seconds_;
  double writing_ = 0;     // of the background's until it was waited for
  Background background_;  // the last, so that it ends first
};

// Moves the checkpoints of a run to a free name beside them, so that it begins at step 0: nothing is lost.
void give_up_checkpoints(const io::RunDirectory& directory);

// The lines of the run's metrics.jsonl in each of its checkpoints, under the manifest's hash: what was lost from the
// file or changed in it comes back. Both parts do nothing where there are none.
void keep_metrics(const Path& checkpoint, const std::string& lines);
void bring_back_metrics(const Path& metrics, const Path& checkpoint);

}  // namespace ropd::train
