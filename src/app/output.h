// What commands that write have in common: an existing output is replaced only with --overwrite, an input is
// never written onto, and a command that was stopped on request says so by its exit code.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/standard_streams.h"

namespace ropd::app {

// Exit codes of the program: 0 done, 1 failed, 2 wrong usage, and
inline constexpr int kStopped =
    3;  // stopped on request: not done, and the same command or `ropd resume` goes on

struct Output {
  std::string path;
  bool overwrites = false;
  bool is_standard() const { return path == kStandardOutput; }  // so nothing else may go there
};

// --out, where `-` is standard output, and --overwrite.
CLI::Option* add_output(CLI::App& command, Output& output, const std::string& help);

// Before anything is computed. Fails when the output exists and may not be replaced, or is one of the inputs
// under whatever name: a file that is read, or a file of a folder that is read. A page (.html) in such a folder is
// a report that was written there, and no input. Pipes and devices may always be written to; an empty path is no
// output.
void check_output(const Output& output, const std::vector<std::string>& inputs);
void refuse_inputs(const std::string& output, const std::vector<std::string>& inputs);

// The same for a folder that several files are written into: one that holds something needs --overwrite.
void check_output_folder(const Output& output);

// Text with names or words of strangers, for people (base/visible_text.h), on standard output.
void print_text(std::string_view text);

// One object on a line of standard output; bytes that are no UTF-8 are replaced.
void print_json(const Json& object);

// One line for people, then exit code kStopped.
[[noreturn]] void end_stopped(const std::string& text);
[[noreturn]] void end_stopped();  // when the line is out already

}  // namespace ropd::app
