// What ropd plan prints, shared with ropd train --dry-run.
#pragma once
#include <CLI/App.hpp>
#include <optional>

#include "train/train_config.h"

namespace ropd::app {

// What a plan is made for.
struct PlanOptions {
  std::optional<double> memory_gb = {};  // a machine with so much free; nothing = this one
  int ranks = 1;
  std::optional<double> mean_tokens = {};  // of a response; nothing = a quarter of the longest
  bool tries_stages = false;  // measure the time of stages (stage_speeds.h), else guess it
};

// Prints the plan and, where it does not fit, what would; fails when the run cannot fit. checks_start: also
// load models and queries and show the first prompt.
void print_plan(const CLI::App& command, const train::TrainConfig& config, bool checks_start,
                const PlanOptions& options = {});

// --ranks.
void add_ranks(CLI::App& command, int& ranks);

}  // namespace ropd::app
