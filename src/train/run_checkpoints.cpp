#include "train/run_checkpoints.h"

#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/stopwatch.h"
#include "io/metrics_file.h"

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

void give_up_checkpoints(const io::RunDirectory& directory) {
  for (int number = 1;; ++number) {
    const Path place = directory.path() / ("checkpoints.given-up-" + std::to_string(number));
    if (std::filesystem::exists(place)) continue;
    std::filesystem::rename(directory.checkpoints(), place);
    log_info(directory.checkpoints().string(), ": moved to ", place.string(), ", beginning at step 0");
    return;
  }
}

void keep_metrics(const Path& checkpoint, const std::string& lines) {
  if (!lines.empty()) write_file_atomically(checkpoint / io::kMetricsCopy, lines);
}

void bring_back_metrics(const Path& metrics, const Path& checkpoint) {
  const Path copy = checkpoint / io::kMetricsCopy;
  if (!std::filesystem::exists(copy)) return;
  if (const std::string place = io::restore_metrics(metrics, copy); !place.empty())
    log_warning(place,
                ": lost or changed; lines are taken from the checkpoint, what was there is in "
                "metrics.discarded.jsonl");
}

}  // namespace ropd::train
