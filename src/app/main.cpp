// The program: global options, the subcommands, exit codes. 0 done, 1 failed (one line on stderr), 2 wrong
// usage, 3 stopped on request (app/output.h).
#include <fcntl.h>
#include <ropd_revision.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/help_format.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/config_fields.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mapped_regions.h"
#include "base/progress.h"
#include "base/threads.h"
#include "base/version.h"
#include "base/waiting.h"

namespace ropd::app {

bool wants_json(const CLI::App& app) {
  const CLI::App* program = &app;
  while (program->get_parent()) program = program->get_parent();
  return program->get_option("--json")->count() > 0;
}

namespace {

constexpr const char* kExamples = R"(Examples:
  ropd inspect models/Qwen3-0.6B        what a model directory holds
  source <(ropd completion bash)        complete commands and options in this shell
Every command explains itself: ropd COMMAND --help)";

// In the order of --help.
void add_commands(CLI::App& app) {
  add_generate(app);
  add_lab(app);
  add_study(app);
  add_branch(app);
  add_train(app);
  add_resume(app);
  add_verify(app);
  add_merge(app);
  add_plan(app);
  add_score(app);
  add_sft(app);
  add_report(app);
  add_watch(app);
  add_bench(app);
  add_inspect(app);
  add_completion(app);
  add_config_reference(app);
  add_data(app);
  add_grade(app);
  add_tokenize(app);
  add_compare(app);
  add_eval(app);
  add_diagnose(app);
  add_doctor(app);
}

// Commands that ranks of mpirun or srun share; the others would do the same thing several times.
bool works_in_ranks(const std::string& command) {
  static const std::set<std::string> names = {"train", "resume",   "generate", "score",
                                              "eval",  "diagnose", "study",    "doctor"};
  return names.contains(command);
}

// What --help of a command would not say: these belong to the program.
void name_common_options(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    command->footer(command->get_footer() +
                    "\nEverywhere: --threads N, --quiet (no progress), --json (JSON lines)");
    name_common_options(*command);
  }
}

// Shells replace ~/ where a word begins with it, not in --out=~/x or student=~/x: done here for all commands.
std::vector<std::string> with_home(std::span<char*> words) {
  std::vector<std::string> result(words.begin(), words.end());
  const char* home = std::getenv("HOME");
  for (std::string& word : result)
    if (const size_t at = word.find("=~/"); home && at != std::string::npos && at == word.find('='))
      word.replace(at + 1, 1, home);
  return result;
}

void configure(CLI::App& app) {
  app.name("ropd");
  app.formatter(help_format());
  app.description("On-policy distillation of language models with replay curricula.");
  app.footer(kExamples);
  app.set_version_flag("--version", "ropd " ROPD_VERSION " (" ROPD_REVISION ")");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.require_subcommand(1);
  app.fallthrough();  // ropd inspect DIR --json is ropd --json inspect DIR
  app.add_flag("--quiet")->description("no progress and no messages except warnings");
  app.add_flag("--json")->description("results and progress as JSON lines");
  app.add_option("--threads", "number of threads (default: all cores, or a rank's share of them)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--rank-timeout", "seconds after which a silent rank of mpirun or srun ends the run")
      ->check(number_in("a number from 1 to 86400", [](double x) { return x >= 1 && x <= 86400; }))
      ->default_val(120);
  // Runs after all options are read and before the command's own callback.
  app.parse_complete_callback([&app] {
    if (app.get_option("--quiet")->count() > 0) {
      set_log_level(LogLevel::warnings);
      set_progress_mode(ProgressMode::quiet);
    } else if (wants_json(app)) {
      set_progress_mode(ProgressMode::json);
    }
    const bool has_threads = app.get_option("--threads")->count() > 0;
    if (has_threads) set_num_threads(app.get_option("--threads")->as<size_t>());
    set_rank_settings({has_threads, app.get_option("--rank-timeout")->as<double>()});
    for (const CLI::App* command : app.get_subcommands())
      if (!works_in_ranks(command->get_name())) require_alone(command->get_name());
  });
}

int report_failure(const std::string& text) {
  write_failure("ropd", name_of_rank() + text);
  return 1;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(name, names);
  return nearest.empty() ? "" : ", did you mean '" + nearest + "'?";
}

// Of an option that `command` does not have; its value may have been taken for something else, so this says
// more than what CLI11 noticed. Empty when there is none.
std::string unknown_option(const CLI::App& app, const CLI::App& command) {
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    if (argument.size() < 2 || argument[0] != '-') continue;
    const std::string name = argument.substr(0, argument.find('='));
    std::vector<std::string> names;
    for (const CLI::App* place : {&command, &app})
      for (const CLI::Option* option : place->get_options())
        for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
    std::string hint = suggestion(name, names);
    if (hint.empty() && command.get_option_no_throw("overrides"))
      hint = "; settings are written key=value, without dashes";
    return "unknown option '" + name + "'" + hint;
  }
  return "";
}

int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = "ropd";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  const auto rest = app.remaining();
  std::string text = unknown_option(app, *command);
  if (text.empty() && command == &app && !rest.empty()) {
    std::vector<std::string> names;
    for (const auto* known : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(known->get_name());
    text = "unknown command '" + rest.front() + "'" + suggestion(rest.front(), names);
  }
  if (text.empty()) text = error.what();
  write_failure(name, text + " (see " + name + " --help)");
  return 2;
}

// A file opened while one of the three is closed would take its number and receive what is meant for a
// person.
void take_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != descriptor) ::_exit(1);
}

// A file at the limit of its size is an error with a name (EFBIG), not the end of the program; likewise a
// mapped file that can no longer be read.
void name_files_in_faults() {
  ::signal(SIGXFSZ, SIG_IGN);
  install_bus_error_handler();
}

int run(int argument_count, char** arguments) {
  set_program_version({ROPD_VERSION, ROPD_REVISION});
  // Also what is wrong with the command line itself is told in the format it asks for.
  const std::span words(arguments, static_cast<size_t>(argument_count));
  if (std::ranges::find(words, std::string_view("--json")) != words.end()) set_log_format(LogFormat::json);
  CLI::App app;
  configure(app);
  add_commands(app);
  name_common_options(app);
  read_numbers_as_written(app);
  try {
    std::vector<std::string> rest = with_home(words.subspan(1));
    std::reverse(rest.begin(), rest.end());  // as CLI11 wants them
    app.parse(std::move(rest));
    if (std::fflush(stdout) != 0) fail("stdout: cannot write the result (full disk or closed pipe?)");
    return 0;
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::RuntimeError& stopped) {
    show_live_line("");
    return stopped.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  } catch (const Stopped& stopped) {
    show_live_line("");
    log_warning(stopped.what());
    return kStopped;
  } catch (const Error& error) {
    return report_failure(error.what());
  } catch (const std::bad_alloc&) {
    return report_failure("out of memory (smaller batch, shorter responses or fewer threads need less)");
  } catch (const std::filesystem::filesystem_error& error) {
    return report_failure(error.path1().string() + ": " + error.code().message());
  } catch (const std::exception& error) {
    return report_failure(std::string("internal error: ") + error.what());
  }
}

}  // namespace
}  // namespace ropd::app

int main(int argument_count, char** arguments) {
  ropd::app::take_standard_descriptors();
  ropd::app::name_files_in_faults();
  const int exit_code = ropd::app::run(argument_count, arguments);
  ropd::app::leave_crew(exit_code);
  return exit_code;
}
