#include "base/log.h"

#include <cstdio>
#include <mutex>

namespace ropd {
namespace {

// There is one stderr; what is shown on it is a property of the process.
struct Screen {
  std::mutex mutex;
  LogLevel level = LogLevel::info;
  std::string live_line;  // guarded by mutex
};

Screen& screen() {
  static Screen the_screen;
  return the_screen;
}

constexpr const char* kEraseLine = "\r\x1b[K";

}  // namespace

void set_log_level(LogLevel level) {
  const std::lock_guard lock(screen().mutex);
  screen().level = level;
}

LogLevel log_level() {
  const std::lock_guard lock(screen().mutex);
  return screen().level;
}

void write_log(LogLevel level, const std::string& text) {
  Screen& state = screen();
  const std::lock_guard lock(state.mutex);
  if (level == LogLevel::quiet || level > state.level) return;
  std::string out = state.live_line.empty() ? "" : kEraseLine;
  if (level == LogLevel::warnings) out += "warning: ";
  out += text + "\n" + state.live_line;
  std::fputs(out.c_str(), stderr);  // one call, so that lines of several processes do not mix
}

void show_live_line(const std::string& text) {
  Screen& state = screen();
  const std::lock_guard lock(state.mutex);
  if (text.empty() && state.live_line.empty()) return;
  state.live_line = text;
  std::fputs((kEraseLine + text).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace ropd
