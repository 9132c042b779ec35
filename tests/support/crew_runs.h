// Whole runs by ranks that are threads, and what of a run's files must not depend on their number.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "comm/thread_world.h"
#include "support/timeless.h"
#include "support/whole_run.h"
#include "train/run_parts.h"

namespace ropd::test {

// Large enough for four blocks of 65,536 parameters.
inline ModelConfig four_blocks() {
  ModelConfig c = tiny_config(Architecture::qwen3);
  c.hidden_size = 96;
  c.intermediate_size = 288;
  c.head_dim = 24;
  return c;
}

// work(crew) on the leader, while the others assist; its result.
inline train::RunOutcome run_in_crew(int ranks,
                                     const std::function<train::RunOutcome(comm::Crew& crew)>& work) {
  train::RunOutcome outcome = train::RunOutcome::stopped;
  comm::run_thread_world(ranks, [&](comm::World& world) {
    comm::Crew crew(world);
    if (!crew.leads()) {
      train::assist_run(crew);
      return;
    }
    outcome = work(crew);
    crew.dismiss(0);
  });
  return outcome;
}

// By name, the content of everything a run leaves that is a result: banks, rollouts, samples, evaluations, files
// of the newest checkpoint, metrics but for times.
inline std::map<std::string, std::string> results_of(const Path& run) {
  std::map<std::string, std::string> results;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().lexically_relative(run).generic_string();
    bool is_result = name.ends_with(".safetensors") || name.ends_with("state.json");
    for (const char* folder : {"banks/", "rollouts/", "samples/", "eval/"})
      is_result = is_result || name.starts_with(folder);
    if (is_result) results[name] = sha256_file(entry.path());
  }
  results["metrics.jsonl"] = timeless_metrics(run / "metrics.jsonl");
  return results;
}

}  // namespace ropd::test
