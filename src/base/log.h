// One-line messages for people on stderr. Results go to stdout and files, never through here.
#pragma once
#include <sstream>
#include <string>

namespace ropd {

enum class LogLevel { quiet, warnings, info };

void set_log_level(LogLevel level);
LogLevel log_level();
void write_log(LogLevel level, const std::string& text);  // keeps a live progress line intact

// The line a terminal shows below all messages (progress); empty removes it. Thread-safe, as is write_log.
void show_live_line(const std::string& text);

template <class... Parts>
void log_info(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  write_log(LogLevel::info, text.str());
}

template <class... Parts>
void log_warning(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  write_log(LogLevel::warnings, text.str());
}

}  // namespace ropd
