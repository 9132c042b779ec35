// The subcommands of the program, one file each: add_NAME declares options and sets a callback that parses,
// builds, runs. A callback reports failure by fail() (exit code 1) and wrong usage by throwing
// CLI::ValidationError (exit code 2), and an end on request by end_stopped (app/output.h, exit code 3).
// Results go to stdout or files, messages through base/log.h. --quiet, --json and --threads belong to the
// program and are in force before a callback runs; a command whose output is data asks wants_json(app). A
// command that polls stop_requested() calls install_stop_handlers() first; in the others an interrupt simply
// ends the program.
#pragma once
#include <CLI/App.hpp>

namespace ropd::app {

// True when --json was given; app is the program or one of its subcommands.
bool wants_json(const CLI::App& app);

void add_lab(CLI::App& app);
void add_study(CLI::App& app);
void add_branch(CLI::App& app);
void add_train(CLI::App& app);
void add_resume(CLI::App& app);
void add_verify(CLI::App& app);
void add_merge(CLI::App& app);
void add_plan(CLI::App& app);
void add_score(CLI::App& app);
void add_sft(CLI::App& app);
void add_bench(CLI::App& app);
void add_completion(CLI::App& app);
void add_config_reference(CLI::App& app);
void add_inspect(CLI::App& app);
void add_report(CLI::App& app);
void add_data(CLI::App& app);
void add_generate(CLI::App& app);
void add_grade(CLI::App& app);
void add_compare(CLI::App& app);
void add_eval(CLI::App& app);
void add_diagnose(CLI::App& app);
void add_doctor(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_watch(CLI::App& app);

}  // namespace ropd::app
