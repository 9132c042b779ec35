#include "base/run_progress.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "base/terminal_line.h"

namespace ropd {
namespace {

// There is one stderr, so there is one run that it shows.
struct Current {
  std::mutex mutex;
  RunProgress* run = nullptr;  // guarded by mutex
};

Current& current() {
  static Current the_current;
  return the_current;
}

constexpr size_t kNumTimed = 4;
constexpr std::chrono::seconds kListenerInterval{1};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::string run_line(const RunStatus& status, std::optional<size_t> columns) {
  const StageStatus& stage = status.stage;
  const LinePart parts[] = {{status.name, 3},
                            {status.iteration > 0 ? format_done(status.iteration, status.iterations) : "", 0},
                            {stage.stage, 1},
                            {stage.stage.empty() ? "" : format_done(stage.done, stage.total, stage.part), 0},
                            {stage.rate > 0 ? format_rate(stage.rate, stage.unit) : "", 2},
                            {status.seconds_left ? format_duration(*status.seconds_left) + " left" : "", 0},
                            {stage.note, 4}};
  return fit_line(parts, columns);
}

double run_seconds_left(double seconds_per_iteration, uint64_t iterations_left, double seconds_of_this) {
  if (iterations_left == 0) return 0;
  return seconds_per_iteration * static_cast<double>(iterations_left - 1) +
         std::max(seconds_per_iteration - seconds_of_this, 0.0);
}

RunProgress::RunProgress(std::string name, uint64_t iterations, std::optional<double> seconds_per_iteration,
                         Listener listener)
    : status_{.name = std::move(name), .iterations = iterations},
      listener_(std::move(listener)),
      iteration_began_(std::chrono::steady_clock::now()) {
  if (seconds_per_iteration) seconds_.push_back(*seconds_per_iteration);
  if (listener_) listener_(status_);
  const std::lock_guard lock(current().mutex);
  current().run = this;
}

RunProgress::~RunProgress() {
  const std::lock_guard lock(current().mutex);
  current().run = nullptr;
  show_live_line("");
}

void RunProgress::begin_iteration(uint64_t iteration) {
  const std::lock_guard lock(mutex_);
  status_.iteration = iteration;
  num_closed_ = iteration - 1;
}

void RunProgress::end_iteration() {
  const std::lock_guard lock(mutex_);
  seconds_.push_back(seconds_since(iteration_began_));
  if (seconds_.size() > kNumTimed) seconds_.pop_front();
  num_closed_ = status_.iteration;
  iteration_began_ = std::chrono::steady_clock::now();
}

std::optional<double> RunProgress::left() const {
  if (seconds_.empty()) return std::nullopt;
  const double sum = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  return run_seconds_left(sum / static_cast<double>(seconds_.size()),
                          status_.iterations - std::min(num_closed_, status_.iterations),
                          seconds_since(iteration_began_));
}

std::optional<double> RunProgress::seconds_left() const {
  const std::lock_guard lock(mutex_);
  return left();
}

void RunProgress::show(const StageStatus& stage) {
  const std::lock_guard lock(mutex_);
  const bool is_new_stage = stage.stage != status_.stage.stage;
  status_.stage = stage;
  status_.seconds_left = left();
  const auto now = std::chrono::steady_clock::now();
  if (listener_ && (is_new_stage || now - listener_told_ >= kListenerInterval)) {
    listener_told_ = now;
    listener_(status_);
  }
  if (progress_mode() != ProgressMode::automatic) return;
  if (const auto columns = terminal_columns()) show_live_line(run_line(status_, *columns - 1));
}

bool in_run() {
  const std::lock_guard lock(current().mutex);
  return current().run != nullptr;
}

bool tell_run(const StageStatus& stage) {
  const std::lock_guard lock(current().mutex);
  if (current().run) current().run->show(stage);
  return current().run != nullptr;
}

}  // namespace ropd
