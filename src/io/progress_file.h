// progress.json of a run: which process works on it, when it was last heard of, and where it stands. For
// onlookers only (`ropd watch`): nothing of a run depends on it, so it is replaced whole but not made
// durable, and a disk that refuses it does not stop a run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/run_progress.h"

namespace ropd::io {

// A process of a machine. Its start time tells it from a later one that was given the same number.
struct ProcessIdentity {
  std::string host;
  int64_t pid = 0;
  uint64_t start_ticks = 0;  // since the machine started (/proc/PID/stat)
  bool operator==(const ProcessIdentity&) const = default;
};

ProcessIdentity this_process();
// Whether a process of this machine is still there; nothing when it is another machine's.
std::optional<bool> is_alive(const ProcessIdentity& process);

enum class RunPhase { running, stopped, failed, finished };

struct ProgressRecord {
  ProcessIdentity process;
  RunPhase phase = RunPhase::running;
  double heartbeat = 0;  // seconds since 1970, when it was written
  RunStatus status;
};

// Writes `path` from the first status on. Destroyed without finish() it leaves `failed`.
class ProgressFile {
 public:
  explicit ProgressFile(Path path);
  ProgressFile(const ProgressFile&) = delete;
  ProgressFile& operator=(const ProgressFile&) = delete;
  ~ProgressFile();
  void write(const RunStatus& status);
  void finish(RunPhase phase);

 private:
  const Path path_;
  ProgressRecord record_;
  bool is_finished_ = false;
  void write();
};

std::string progress_json(const ProgressRecord& record);
// Nothing when there is no such file, or none that can be read as one: it may come from a stranger.
std::optional<ProgressRecord> read_progress(const Path& path);

}  // namespace ropd::io
