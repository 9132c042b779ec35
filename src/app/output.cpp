#include "app/output.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"

namespace ropd::app {

namespace fs = std::filesystem;

CLI::Option* add_output(CLI::App& command, Output& output, const std::string& help) {
  command.add_flag("--overwrite", output.overwrites, "replace an output that exists");
  return command.add_option("--out", output.path, help + "; - is standard output")
      ->transform(CLI::Validator(
          [](std::string& path) -> std::string {
            if (path == "-") path = kStandardOutput;
            return "";
          },
          ""));
}

void refuse_inputs(const std::string& output, std::initializer_list<std::string> inputs) {
  std::error_code ignored;
  for (const std::string& input : inputs)
    if (!input.empty() && fs::is_regular_file(output, ignored) && fs::equivalent(output, input, ignored))
      fail(output, ": is an input of this command; choose another --out");
}

void check_output(const Output& output, std::initializer_list<std::string> inputs) {
  if (output.path.empty()) return;
  refuse_inputs(output.path, inputs);
  std::error_code ignored;
  if (!output.overwrites && !output.is_standard() && fs::is_regular_file(output.path, ignored))
    fail(output.path, ": exists already; --overwrite replaces it, or choose another --out");
}

void print_json(const Json& object) {
  std::printf("%s\n", object.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

void end_stopped() { throw CLI::RuntimeError(kStopped); }

void end_stopped(const std::string& text) {
  log_warning(text);
  end_stopped();
}

}  // namespace ropd::app
