#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/terminal_line.h"
#include "base/visible_text.h"

namespace ropd {
namespace {

// There is one stderr; what is shown on it is a property of the process.
struct Screen {
  std::mutex mutex;
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;
  std::string live_line;  // guarded by mutex
};

Screen& screen() {
  static Screen the_screen;
  return the_screen;
}

constexpr const char* kEraseLine = "\r\x1b[K";

std::string json_line(const char* level, const std::string& text) {
  const nlohmann::ordered_json line = {{"level", level}, {"message", text}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// One call, so that lines of several processes do not mix.
void put(const Screen& state, const std::string& line) {
  const std::string erased = state.live_line.empty() ? "" : kEraseLine;
  std::fputs((erased + line + state.live_line).c_str(), stderr);
}

}  // namespace

void set_log_level(LogLevel level) {
  const std::lock_guard lock(screen().mutex);
  screen().level = level;
}

LogLevel log_level() {
  const std::lock_guard lock(screen().mutex);
  return screen().level;
}

void set_log_format(LogFormat format) {
  const std::lock_guard lock(screen().mutex);
  screen().format = format;
}

void write_log(LogLevel level, const std::string& text) {
  Screen& state = screen();
  const std::lock_guard lock(state.mutex);
  if (level == LogLevel::quiet || level > state.level) return;
  const bool is_warning = level == LogLevel::warnings;
  put(state, state.format == LogFormat::json ? json_line(is_warning ? "warning" : "info", text)
                                             : (is_warning ? "warning: " : "") + visible_line(text) + "\n");
}

void write_failure(const std::string& program, const std::string& text) {
  show_live_line("");
  Screen& state = screen();
  const std::lock_guard lock(state.mutex);
  put(state, state.format == LogFormat::json ? json_line("error", text)
                                             : program + ": " + visible_line(text) + "\n");
}

void show_live_line(const std::string& text) {
  Screen& state = screen();
  const std::lock_guard lock(state.mutex);
  if (text.empty() && state.live_line.empty()) return;
  // The last column stays free: some terminals go to the next line when it is filled.
  const size_t columns = terminal_columns().value_or(80);
  state.live_line = cut_to_columns(visible_line(text), columns > 0 ? columns - 1 : 0);
  std::fputs((kEraseLine + state.live_line).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace ropd
