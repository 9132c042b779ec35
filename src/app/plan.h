// What ropd plan prints, shared with ropd train --dry-run.
#pragma once
#include <CLI/App.hpp>

#include "train/train_config.h"

namespace ropd::app {

// Prints the plan; fails when the run cannot fit. checks_start: also load models and queries and show the
// first prompt.
void print_plan(const CLI::App& command, const train::TrainConfig& config, bool checks_start, int ranks = 1);

// --ranks.
void add_ranks(CLI::App& command, int& ranks);

}  // namespace ropd::app
