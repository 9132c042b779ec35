// What ropd plan prints, shared with ropd train --dry-run.
#pragma once
#include <CLI/App.hpp>
#include <optional>

#include "train/train_config.h"

namespace ropd::app {

// Prints the plan and, where it does not fit, what would; fails when the run cannot fit. checks_start: also
// load models and queries and show the first prompt. memory_gb: for a machine with so much free.
void print_plan(const CLI::App& command, const train::TrainConfig& config, bool checks_start,
                std::optional<double> memory_gb = {});

}  // namespace ropd::app
