#include "app/output.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/visible_text.h"

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

namespace {

// A study links evaluations into its runs: study/runs/ID/eval/NAME/summary.json. Deeper ones are no inputs, and
// links in a circle end.
constexpr int kFolderLevels = 8;

bool is_file_of(const Path& file, const Path& folder) {
  if (file.extension() == ".html") return false;
  const auto options =
      fs::directory_options::follow_directory_symlink | fs::directory_options::skip_permission_denied;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, options, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry.depth() >= kFolderLevels) entry.disable_recursion_pending();
    if (fs::equivalent(file, entry->path(), ignored)) return true;
  }
  return false;
}

}  // namespace

void refuse_inputs(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  if (!fs::is_regular_file(output, ignored)) return;
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    if (fs::is_directory(input, ignored) ? is_file_of(output, input) : fs::equivalent(output, input, ignored))
      fail(output, ": is an input of this command; choose another --out");
  }
}

void check_output(const Output& output, const std::vector<std::string>& inputs) {
  if (output.path.empty()) return;
  refuse_inputs(output.path, inputs);
  std::error_code ignored;
  if (!output.overwrites && !output.is_standard() && fs::is_regular_file(output.path, ignored))
    fail(output.path, ": exists already; --overwrite replaces it, or choose another --out");
}

void check_output_folder(const Output& output) {
  if (output.path.empty()) return;
  std::error_code ignored;
  if (fs::exists(output.path, ignored) && !fs::is_directory(output.path, ignored))
    fail(output.path, ": is no folder; choose another --out");
  if (!output.overwrites && fs::is_directory(output.path, ignored) && !fs::is_empty(output.path, ignored))
    fail(output.path,
         ": holds files already; --overwrite replaces those of the same names, or choose another --out");
}

void print_text(std::string_view text) { std::fputs(visible_text(text).c_str(), stdout); }

void print_json(const Json& object) {
  std::printf("%s\n", object.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

void end_stopped() { throw CLI::RuntimeError(kStopped); }

void end_stopped(const std::string& text) {
  log_warning(text);
  end_stopped();
}

}  // namespace ropd::app
