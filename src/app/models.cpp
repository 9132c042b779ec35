#include "app/models.h"

#include <CLI/CLI.hpp>

#include "app/arguments.h"
#include "base/log.h"
#include "base/progress.h"
#include "distill/scoring.h"

namespace ropd::app {

void add_teacher_memory(CLI::App& command, std::optional<double>& memory_gb) {
  command
      .add_option("--teacher-memory-gb", memory_gb,
                  "for the teacher, activations included; one that does not fit is streamed layer by layer "
                  "(less than one layer means one layer); default: what is free")
      ->check(is_memory_gb());
}

model::BoundedModel bounded_model(const std::string& path, const std::string& base,
                                  std::optional<double> memory_gb) {
  auto directory = std::make_shared<const io::ModelDirectory>(path, base);
  const auto memory = memory_gb ? std::optional(static_cast<uint64_t>(*memory_gb * 1e9)) : std::nullopt;
  model::BoundedModel bounded(directory, model::map_weights(directory), memory);
  const model::Weights weights = bounded.weights(distill::ScoringConfig{}.batch_tokens);
  if (!weights.stream) model::check_finite(weights, path);
  return bounded;
}

void log_streamed(const char* who, const model::StreamCounts& counts) {
  if (counts.passes == 0) return;
  log_info(who, ": streamed, ", counts.passes, counts.passes == 1 ? " pass" : " passes",
           " through its layers, ", format_bytes(static_cast<double>(counts.bytes)), " read");
}

}  // namespace ropd::app
