#include "base/progress.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/log.h"

namespace ropd {
namespace {

std::atomic<ProgressMode> progress_mode{
    ProgressMode::automatic};  // of the program, set once from its options

constexpr double kLiveSeconds = 0.1;   // between redraws of the live line
constexpr double kPlainSeconds = 5.0;  // between plain lines in a log file

double seconds_between(std::chrono::steady_clock::time_point begin,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

bool is_live() { return progress_mode == ProgressMode::automatic && ::isatty(STDERR_FILENO) == 1; }

std::string format_text(const char* pattern, auto... values) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, values...);
  return buffer;
}

std::string with_separators(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
  return text;
}

}  // namespace

void set_progress_mode(ProgressMode mode) { progress_mode = mode; }

Progress::Progress(std::string stage, uint64_t total, std::string unit)
    : stage_(std::move(stage)),
      unit_(std::move(unit)),
      total_(total),
      begin_(std::chrono::steady_clock::now()),
      shown_(begin_) {}

Progress::~Progress() { finish(); }

void Progress::update(uint64_t done, uint64_t work, const std::string& note) {
  done_ = done;
  work_ = work;
  note_ = note;
  const auto now = std::chrono::steady_clock::now();
  if (seconds_between(shown_, now) < (is_live() ? kLiveSeconds : kPlainSeconds)) return;
  shown_ = now;
  show(/*last=*/false);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  show(/*last=*/true);
}

double Progress::seconds() const { return seconds_between(begin_, std::chrono::steady_clock::now()); }

void Progress::show(bool last) {
  if (progress_mode == ProgressMode::quiet) return;
  const double elapsed = seconds();
  const double rate = static_cast<double>(work_ > 0 ? work_ : done_) / std::max(elapsed, 1e-9);
  const double left = done_ > 0 && total_ > done_
                          ? elapsed * static_cast<double>(total_ - done_) / static_cast<double>(done_)
                          : 0.0;
  if (progress_mode == ProgressMode::json) {
    nlohmann::ordered_json line = {{"stage", stage_}, {"done", done_},   {"total", total_},
                                   {"rate", rate},    {"unit", unit_},   {"seconds", elapsed},
                                   {"left", left},    {"finished", last}};
    if (!note_.empty()) line["note"] = note_;
    std::fputs((line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n").c_str(),
               stderr);
    return;
  }
  std::string text = stage_ + "  " + with_separators(done_);
  if (total_ > 0) text += "/" + with_separators(total_);
  text += "  " + format_count(rate) + (unit_.empty() ? "" : " " + unit_) + "/s";
  if (last) {
    text += "  " + format_duration(elapsed);
  } else if (done_ > 0 && total_ > 0) {
    text += "  " + format_duration(left) + " left";
  }
  if (!note_.empty()) text += "  " + note_;
  if (last) {
    show_live_line("");
    write_log(LogLevel::info, text);
  } else if (is_live()) {
    show_live_line(text);
  } else {
    write_log(LogLevel::info, text);
  }
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::max(seconds, 0.0)));
  if (whole < 3600) return format_text("%02lld:%02lld", whole / 60, whole % 60);
  return format_text("%02lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_count(double value) {
  if (!std::isfinite(value) || value < 0) return format_text("%g", value);
  if (value >= 999.95e6) return format_text("%.1fB", value / 1e9);
  if (value >= 999999.5) return format_text("%.1fM", value / 1e6);
  if (value >= 100 || value == std::floor(value))
    return with_separators(static_cast<uint64_t>(std::llround(value)));
  return format_text("%.3g", value);
}

std::string format_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 999.95 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return format_text(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

}  // namespace ropd
