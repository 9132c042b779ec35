// Progress of a long stage: one live line on a terminal (rollouts  312/480  41,200 tok/s  00:12 left), plain
// lines every few seconds otherwise, JSON lines or nothing on request. Inside a run (base/run_progress.h) a
// stage shows nothing of its own: the run's one line does.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ropd {

enum class ProgressMode { automatic, quiet, json };
void set_progress_mode(ProgressMode mode);
ProgressMode progress_mode();

// A stage at one moment.
struct StageStatus {
  std::string stage;
  uint64_t done = 0, total = 0;  // total 0: not known
  double part = 0;               // of the next one: 0.34 of a long response
  double rate = 0;               // `unit` a second; done a second where there is no unit
  std::string unit;
  double seconds = 0;  // since it began
  std::string note;
  bool is_finished = false;

  double seconds_left() const;  // of the stage, at its mean speed; 0 while nothing is done
};

// The line of a stage that is no part of a run, in so many columns.
std::string stage_line(const StageStatus& status, std::optional<size_t> columns);

class Progress {
 public:
  // `unit` names what `work` counts (tokens): the rate is work per second; without work it is done per
  // second.
  Progress(std::string stage, uint64_t total, std::string unit = "");
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // ends the line
  // `note` is shown behind the rate ("mean length 212, 3% at cap").
  // done: whole ones, and the share that is done of the next.
  void update(double done, uint64_t work = 0, const std::string& note = "");
  void finish();
  double seconds() const;

 private:
  StageStatus status_;
  uint64_t work_ = 0;
  std::chrono::steady_clock::time_point begin_, shown_;
  void show();
};

std::string format_done(uint64_t done, uint64_t total,
                        double part = 0);                       // 312/480, 3.14/12; 312 when total is 0
std::string format_rate(double rate, const std::string& unit);  // 41,200 tok/s
std::string format_duration(double seconds);                    // 00:12, 01:02:03
std::string format_count(double value);                         // 41,200  1.2M
std::string format_bytes(double bytes);                         // 1.2 GB

}  // namespace ropd
