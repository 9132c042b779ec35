// Models that commands only read: mapped, within a memory budget, and checked.
#pragma once
#include <CLI/App.hpp>
#include <optional>
#include <string>

#include "model/bounded_model.h"

namespace ropd::app {

// --teacher-memory-gb.
void add_teacher_memory(CLI::App& command, std::optional<double>& memory_gb);

// `base`: of an adapter directory; empty: what it names. Without a number the budget is what is free. Weights that
// are not finite are refused by name: now, or in the first pass of a model that is streamed.
model::BoundedModel bounded_model(const std::string& path, const std::string& base,
                                  std::optional<double> memory_gb);

// What a model read that was streamed; nothing of others.
void log_streamed(const char* who, const model::StreamCounts& counts);

}  // namespace ropd::app
