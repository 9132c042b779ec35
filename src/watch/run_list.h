// The runs and studies below a folder as an onlooker sees them: found by their files, judged by progress.json and the
// process table, refreshed by looking only at what changed. Reads files and writes none; whatever they hold,
// a run is at worst shown as one that cannot be read.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "io/progress_file.h"
#include "watch/study_list.h"

namespace ropd::watch {

enum class RunState {
  running,
  stopped,  // on request; saved
  failed,   // ended by an error
  dead,     // its process is gone and left nothing behind
  silent,   // of another machine, and not heard of for minutes
  finished,
  unknown  // no progress.json that can be read
};
const char* state_name(RunState state);

// `is_alive` as io::is_alive(); `now` in seconds since 1970.
RunState judge_state(const std::optional<io::ProgressRecord>& progress, std::optional<bool> is_alive,
                     double now);

struct RunSummary {
  std::string id;  // path below the folder; "." for the folder itself
  Path path;
  std::string label = {};  // of a run of a study: what is made in it
  RunState state = RunState::unknown;
  std::optional<io::ProgressRecord> progress;
  Json last_iteration;         // the newest line of its kind in metrics.jsonl; null when there is none
  std::string metrics_stamp;   // changes when metrics or evaluations do
  std::string samples_stamp;   // likewise
  std::string progress_stamp;  // likewise
  uint64_t version = 0;        // RunList::version() of its last change
};

// For people: what a study calls it, its path below the folder, or the folder's own name.
std::string visible_name(const RunSummary& run, size_t max_characters = 200);

// What the page knows of a run, every text fit to be shown.
Json summary_json(const RunSummary& run);

// Not thread-safe.
class RunList {
 public:
  // Fails when there is no such folder.
  explicit RunList(Path folder);
  // Looks again; the tree is walked only every few seconds. Returns version().
  uint64_t refresh(double now);
  uint64_t version() const { return version_; }  // grows with every change
  uint64_t membership_version() const { return membership_version_; }
  const std::vector<RunSummary>& runs() const { return runs_; }  // by id
  const RunSummary* find(const std::string& id) const;
  const std::vector<StudySummary>& studies() const { return studies_; }  // by id
  const StudySummary* find_study(const std::string& id) const;
  const Path& folder() const { return folder_; }

 private:
  const Path folder_;
  std::vector<RunSummary> runs_;
  std::vector<StudySummary> studies_;
  uint64_t version_ = 0, membership_version_ = 0;
  double walked_ = 0;
  void walk();
  StudySummary known_study(const Path& file) const;
  void look_at(RunSummary& run, double now);
};

}  // namespace ropd::watch
