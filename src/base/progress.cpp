#include "base/progress.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/run_progress.h"
#include "base/terminal_line.h"

namespace ropd {
namespace {

std::atomic<ProgressMode> mode_of_program{
    ProgressMode::automatic};  // of the program, set once from its options

constexpr double kLiveSeconds = 0.1;   // between redraws of the live line
constexpr double kPlainSeconds = 5.0;  // between plain lines in a log file

double seconds_between(std::chrono::steady_clock::time_point begin,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

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

std::string json_line(const StageStatus& status) {
  nlohmann::ordered_json line = {{"stage", status.stage},         {"done", status.done},
                                 {"total", status.total},         {"rate", status.rate},
                                 {"unit", status.unit},           {"seconds", status.seconds},
                                 {"left", status.seconds_left()}, {"finished", status.is_finished}};
  if (status.part > 0) line["part"] = status.part;
  if (!status.note.empty()) line["note"] = status.note;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void set_progress_mode(ProgressMode mode) { mode_of_program = mode; }
ProgressMode progress_mode() { return mode_of_program; }

double StageStatus::seconds_left() const {
  const double all_done = static_cast<double>(done) + part, all = static_cast<double>(total);
  return all_done > 0 && all > all_done ? seconds * (all - all_done) / all_done : 0.0;
}

std::string format_done(uint64_t done, uint64_t total, double part) {
  const auto hundredths = static_cast<int>(part * 100);  // never rounded up to one that is not done
  return with_separators(done) + (hundredths > 0 ? format_text(".%02d", hundredths) : "") +
         (total > 0 ? "/" + with_separators(total) : "");
}

std::string format_rate(double rate, const std::string& unit) {
  return format_count(rate) + (unit.empty() ? "" : " " + unit) + "/s";
}

std::string stage_line(const StageStatus& status, std::optional<size_t> columns) {
  std::string time;
  if (status.is_finished)
    time = format_duration(status.seconds);
  else if (status.seconds_left() > 0 || (status.done > 0 && status.total > 0))
    time = format_duration(status.seconds_left()) + " left";
  const LinePart parts[] = {{status.stage, 1},
                            {format_done(status.done, status.total, status.part), 0},
                            {format_rate(status.rate, status.unit), 2},
                            {time, 0},
                            {status.note, 3}};
  return fit_line(parts, columns);
}

Progress::Progress(std::string stage, uint64_t total, std::string unit)
    : status_{.stage = std::move(stage), .total = total, .unit = std::move(unit)},
      begin_(std::chrono::steady_clock::now()),
      shown_(begin_) {
  tell_run(status_);  // which says what it is doing, however long the first part of a stage takes
}

Progress::~Progress() { finish(); }

void Progress::update(double done, uint64_t work, const std::string& note) {
  status_.done = static_cast<uint64_t>(done);
  status_.part = done - std::floor(done);
  work_ = work;
  status_.note = note;
  const auto now = std::chrono::steady_clock::now();
  const bool is_live = progress_mode() == ProgressMode::automatic && (terminal_columns() || in_run());
  if (seconds_between(shown_, now) < (is_live ? kLiveSeconds : kPlainSeconds)) return;
  shown_ = now;
  show();
}

void Progress::finish() {
  if (status_.is_finished) return;
  status_.is_finished = true;
  show();
}

double Progress::seconds() const { return seconds_between(begin_, std::chrono::steady_clock::now()); }

void Progress::show() {
  status_.seconds = seconds();
  status_.rate = static_cast<double>(work_ > 0 ? work_ : status_.done) / std::max(status_.seconds, 1e-9);
  const bool is_shown_by_run = tell_run(status_);
  if (progress_mode() == ProgressMode::quiet) return;
  if (progress_mode() == ProgressMode::json) {
    std::fputs(json_line(status_).c_str(), stderr);
    return;
  }
  if (is_shown_by_run) return;
  const auto columns = terminal_columns();
  if (!status_.is_finished && columns) return show_live_line(stage_line(status_, *columns - 1));
  if (columns) show_live_line("");
  write_log(LogLevel::info, stage_line(status_, columns));
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
