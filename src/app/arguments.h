// Checks and translations of single options that several commands have.
#pragma once
#include <CLI/App.hpp>
#include <initializer_list>
#include <string>
#include <utility>

#include "kernels/matmul.h"

namespace ropd::app {

// For ->transform(): a checkpoint or a run where a model is asked for (io/model_path.h).
CLI::Validator to_model();

// The folder of an adapter's base, where the adapter's own config names none that is here.
CLI::Option* add_base(CLI::App& command, const std::string& name, std::string& base);

// For ->transform(): `-` is standard input.
CLI::Validator or_standard_input();

// For ->check().
CLI::Validator number_in(const char* expected, bool (*is_right)(double));
CLI::Validator is_temperature();  // 1e-6 to 1e6
CLI::Validator is_seed();         // 0 to 2^53 - 1: what JSON holds exactly
CLI::Validator is_memory_gb();    // 0 to 1e6
CLI::Validator is_precision();    // one of kernels::kPrecisionNames

// Whole numbers as people write them, of all options of `app` and its subcommands. CLI11 takes 010 for eight, 0x10 for
// sixteen, -1 for the largest number there is and what is larger for the largest one too.
void read_numbers_as_written(CLI::App& app);

// One line that names the settings which are bf16, where bf16_tiles would be faster on this machine.
void mention_tiles(std::initializer_list<std::pair<const char*, kernels::Precision>> settings);

}  // namespace ropd::app
