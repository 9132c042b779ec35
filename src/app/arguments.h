// Checks and translations of single options that several commands have.
#pragma once
#include <CLI/App.hpp>

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

}  // namespace ropd::app
