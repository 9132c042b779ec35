// Progress of a long stage: one live line on a terminal, plain lines every few seconds otherwise, JSON lines
// or nothing on request. Shows stage, done/total, rate and time left:   rollouts  312/480  41,200 tok/s 00:12
// left
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace ropd {

enum class ProgressMode { automatic, quiet, json };
void set_progress_mode(ProgressMode mode);

class Progress {
 public:
  // `unit` names what `work` counts (tokens): the rate is work per second; without work it is done per
  // second.
  Progress(std::string stage, uint64_t total, std::string unit = "");
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // ends the line
  // `note` is shown behind the rate ("mean length 212, 3% at cap").
  void update(uint64_t done, uint64_t work = 0, const std::string& note = "");
  void finish();
  double seconds() const;

 private:
  std::string stage_, unit_;
  uint64_t total_, done_ = 0, work_ = 0;
  std::string note_;
  std::chrono::steady_clock::time_point begin_, shown_;
  bool finished_ = false;
  void show(bool last);
};

std::string format_duration(double seconds);  // 00:12, 01:02:03
std::string format_count(double value);       // 41,200  1.2M
std::string format_bytes(double bytes);       // 1.2 GB

}  // namespace ropd
