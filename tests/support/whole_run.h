// Runs in tests: to their end, read back from their files.
#pragma once
#include <string>
#include <vector>

#include "base/log.h"
#include "io/checkpoint.h"
#include "io/metrics_file.h"
#include "support/tiny_world.h"
#include "train/session.h"

namespace ropd::test {

// SHA-256 of the weights in the newest checkpoint.
inline std::string final_weights(const train::TrainConfig& config) {
  const auto checkpoints = io::list_checkpoints(Path(config.output) / "checkpoints");
  if (checkpoints.empty()) return "no checkpoint";
  return sha256_file(checkpoints.back().path / "model" / "model.safetensors");
}

inline io::Metrics run_to_the_end(const train::TrainConfig& config) {
  set_log_level(LogLevel::quiet);
  EXPECT_EQ(train::start_run(config, "test"), train::RunOutcome::done);
  return io::read_metrics(Path(config.output) / "metrics.jsonl");
}

inline std::vector<std::string> sources_of(const io::Metrics& metrics) {
  std::vector<std::string> sources;
  for (const IterationRecord& record : metrics.iterations) sources.push_back(record.source);
  return sources;
}

}  // namespace ropd::test
