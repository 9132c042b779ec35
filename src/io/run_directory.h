// The folder of one run (docs/formats.md): where its files lie, and that one process at a time writes them.
//   config.yaml environment.json resumed.jsonl metrics.jsonl progress.json banks/ rollouts/ samples/
//   checkpoints/ eval/ tensorboard/ report.html
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"

namespace ropd::io {

// Holds an exclusive lock on the folder as long as it lives; the system releases it when the process dies.
class RunDirectory {
 public:
  // A new run: makes the folder and writes environment.json, then the resolved config.yaml, both durable.
  // Fails when the folder holds a run already (and says how to resume it), or files of something else.
  static RunDirectory create(Path path, std::string_view resolved_config_yaml,
                             std::string_view environment_json);
  // An existing run. Fails when there is none, or when another process has it.
  static RunDirectory open(Path path);

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const Path& path() const { return path_; }
  Path config() const { return path_ / "config.yaml"; }
  Path environment() const { return path_ / "environment.json"; }
  Path resumed() const {
    return path_ / "resumed.jsonl";
  }  // as environment.json, a line for each later session
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

// Versions, machine, threads and git revision as JSON text; command_line is how the run was started.
enum class Layout { indented, one_line };
std::string describe_environment(std::string_view command_line, Layout layout = Layout::indented);

// Fails before training when the disk cannot take what the run will write. `what` names it: "4 checkpoints
// of 7.2 GB".
void require_free_space(const Path& directory, uint64_t bytes_needed, std::string_view what);

}  // namespace ropd::io
