// The progress of a whole run, in one line that a terminal redraws in place:
//   ropd  7/15  rollouts  312/480  41,200 tok/s  12:03 left
// Stages (base/progress.h) that begin while a run is there report to it and show nothing of their own; where
// stderr is no terminal the run is silent too, and who drives it writes one line an iteration. The same facts
// go to a listener, at most once a second and at every change of stage: progress.json.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/progress.h"

namespace ropd {

struct RunStatus {
  std::string name;
  uint64_t iteration = 0;   // from 1; 0 before the first
  uint64_t iterations = 0;  // of the whole run
  StageStatus stage;
  std::optional<double> seconds_left;  // of the run; nothing until an iteration's time is known
};

// In so many columns; what is least important is left out first.
std::string run_line(const RunStatus& status, std::optional<size_t> columns);

// From the mean time of an iteration and how long the present one has taken.
double run_seconds_left(double seconds_per_iteration, uint64_t iterations_left, double seconds_of_this);

// One at a time in a process: it is what stderr shows. Thread-safe.
class RunProgress {
 public:
  using Listener = std::function<void(const RunStatus&)>;
  // seconds_per_iteration: of iterations that earlier sessions made, if any.
  RunProgress(std::string name, uint64_t iterations, std::optional<double> seconds_per_iteration = {},
              Listener listener = {});
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;
  ~RunProgress();  // removes the line

  void begin_iteration(uint64_t iteration);
  // Its time is that since the end of the one before, checkpoint and evaluation included. The mean of the
  // last few tells what is left.
  void end_iteration();
  std::optional<double> seconds_left() const;
  void show(const StageStatus& stage);

 private:
  mutable std::mutex mutex_;
  RunStatus status_;
  uint64_t num_closed_ = 0;  // iterations, those of earlier sessions included
  const Listener listener_;
  std::deque<double> seconds_;  // of the last iterations
  std::chrono::steady_clock::time_point iteration_began_, listener_told_;
  std::optional<double> left() const;
};

bool in_run();
// True when there is a run, which then shows the stage.
bool tell_run(const StageStatus& stage);

}  // namespace ropd
