// What a study's folder holds, by identity:
//   runs/ID           run directories; states.json tells which states their iterations end in
//   banks/ID.jsonl    prefixes/ID.jsonl    evaluations/ID/    diagnoses/ID.json    claims/ID
//   times/ID.json     how long a node took where it was made; nothing depends on it
// Everything appears whole or not at all, so what is there is done; and nothing is believed that was changed
// afterwards: each file has its hash or that of its content beside it (base/sealed_json.h, io/rollout_file.h).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "study/graph.h"

namespace ropd::study {

// Where a state of training lies.
struct FoundState {
  Path run;
  uint64_t iteration = 0;
  Path checkpoint;
};

// The states that the iterations of a run lead to, as its states.json says; none where the run has not ended.
// Fails when the file was changed.
[[nodiscard]] std::map<std::string, FoundState> read_states(const Path& run);

class Store {
 public:
  explicit Store(Path root) : root_(std::move(root)) {}

  Path run(const std::string& id) const { return root_ / "runs" / id; }
  Path bank(const std::string& id) const { return root_ / "banks" / (id + ".jsonl"); }
  Path prefixes(const std::string& id) const { return root_ / "prefixes" / (id + ".jsonl"); }
  Path evaluation(const std::string& id) const { return root_ / "evaluations" / id; }
  Path diagnosis(const std::string& id) const { return root_ / "diagnoses" / (id + ".json"); }
  Path claims() const { return root_ / "claims"; }
  const Path& root() const { return root_; }

  // Reads what runs have said they hold; again after something was made.
  void refresh();
  // The run whose iterations lead to this state; its checkpoint may be gone.
  std::optional<FoundState> find_history(const std::string& state) const;
  // The same with a checkpoint.
  std::optional<FoundState> find_state(const std::string& state) const;
  // Says that a run in run(id) has ended: states [iterations + 1] from its beginning, checkpoints by step.
  void add_run(const std::string& id, const std::vector<std::string>& states,
               const std::vector<uint64_t>& steps) const;

  bool is_done(const Node& node) const;

  // How long a node took; kept for people and tables of times.
  struct Time {
    double seconds = 0, processor_seconds = 0;
  };
  void add_time(const Node& node, double seconds, double processor_seconds) const;
  std::optional<Time> time_of(const std::string& id) const;

 private:
  Path root_;
  std::multimap<std::string, FoundState> states_;
};

}  // namespace ropd::study
