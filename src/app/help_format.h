// The texts of --help in the width of a plain terminal. Commands write theirs without a thought for it; CLI11 2.1
// breaks no lines.
#pragma once
#include <CLI/App.hpp>
#include <memory>

namespace ropd::app {

inline constexpr size_t kHelpColumns = 80;

// For App::formatter(), before subcommands are added: they take it over.
std::shared_ptr<CLI::FormatterBase> help_format();

}  // namespace ropd::app
