// One-line messages for people on stderr, or JSON lines for programs. Results go to stdout and files, never
// through here. Whatever a message quotes, no terminal obeys it.
#pragma once
#include <sstream>
#include <string>

namespace ropd {

enum class LogLevel { quiet, warnings, info };
enum class LogFormat { text, json };  // json: {"level": "info", "message": "..."}

void set_log_level(LogLevel level);
LogLevel log_level();
void set_log_format(LogFormat format);
void write_log(LogLevel level, const std::string& text);  // keeps a live progress line intact

// What ended the program, in the same format: "ropd: text" or {"level": "error", "message": "text"}.
void write_failure(const std::string& program, const std::string& text);

// The line a terminal shows below all messages (progress), cut to its width; empty removes it. Thread-safe,
// as is write_log.
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
