// The folder of one run (docs/formats.md): where its files lie, and that one process at a time writes them.
//   config.yaml environment.json inputs.json history.jsonl metrics.jsonl progress.json banks/ rollouts/
//   samples/ checkpoints/ eval/ tensorboard/ report.html
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_fields.h"
#include "base/file.h"

namespace ropd::io {

// Holds an exclusive lock on the folder as long as it lives; the system releases it when the process dies.
class RunDirectory {
 public:
  // A new run: makes the folder and writes environment.json, inputs.json (unless empty), then the resolved
  // config.yaml, each durable. Fails where require_new does.
  static RunDirectory create(Path path, std::string_view resolved_config_yaml,
                             std::string_view environment_json, std::string_view inputs_json = {});
  // Fails when the folder holds a run already (and says how to resume it), or files of something else, or
  // could not be made. Makes nothing.
  static void require_new(const Path& path);
  // An existing run. Fails when there is none, or when another process has it.
  static RunDirectory open(Path path);

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const Path& path() const { return path_; }
  Path config() const { return path_ / "config.yaml"; }
  Path environment() const { return path_ / "environment.json"; }
  Path inputs() const { return path_ / "inputs.json"; }
  Path history() const { return path_ / "history.jsonl"; }
  Path metrics() const { return path_ / "metrics.jsonl"; }
  Path progress() const { return path_ / "progress.json"; }
  Path tensorboard() const { return path_ / "tensorboard"; }
  Path initial_bank() const { return path_ / "banks" / "initial.jsonl"; }
  Path recent_bank(uint64_t step) const;    // banks/recent-00040.jsonl
  Path rollouts(uint64_t iteration) const;  // rollouts/iter-0001.jsonl
  Path samples(uint64_t iteration) const;   // samples/iter-0001.jsonl
  Path checkpoints() const { return path_ / "checkpoints"; }
  Path evaluation(std::string_view name) const { return path_ / "eval" / name; }
  Path report() const { return path_ / "report.html"; }

 private:
  explicit RunDirectory(Path path);
  Path path_;
  int lock_ = -1;
};

// history.jsonl: one line a session, with all that describe_environment tells. `changes` are settings given
// to `ropd resume`.
struct SessionLine {
  std::string command_line;
  uint64_t step = 0;  // where it began
  std::vector<ConfigDifference> changes;
};
void append_history(const RunDirectory& directory, const SessionLine& line);

// Versions, machine, threads and git revision as JSON text; command_line is how the run was started.
std::string describe_environment(std::string_view command_line);

// Fails before training when the disk cannot take what the run will write. `what` names it: "4 checkpoints
// of 7.2 GB".
void require_free_space(const Path& directory, uint64_t bytes_needed, std::string_view what);

}  // namespace ropd::io
