// Where a run stands: state.json of a checkpoint, collected from those who know when it is saved. Together
// with the learner's files it determines everything that follows, bit for bit.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "curriculum/stages.h"
#include "train/learner.h"

namespace ropd::train {

// The trainer's own counters.
struct RunState {
  uint64_t step = 0;  // optimization steps so far, skipped ones included
  uint64_t skipped_steps = 0;
  uint64_t skipped_in_a_row = 0;
  std::map<std::string, std::string>
      fingerprints;  // of what must not change under a run: queries, student, teacher

  bool operator==(const RunState&) const = default;
};

// How far the rollouts were drawn and what they cost; RolloutSupply's.
struct SupplyState {
  uint64_t next_request = 0;                             // position in the stream of (query, sample)
  uint64_t consumed = 0;                                 // C
  uint64_t rounds = 0;                                   // M
  std::set<std::string> queries;                         // N = their number
  std::map<std::string, uint64_t> bank_positions;        // source_name() -> next row
  std::map<std::string, std::string> bank_fingerprints;  // source_name() -> of the weights it was frozen from

  bool operator==(const SupplyState&) const = default;
};

struct SavedRun {
  RunState run;
  uint64_t minibatches = 0;  // done in the open iteration; 0 between iterations
  SupplyState supply;
  curriculum::CurriculumState curriculum;
  LearnerState learner;

  bool operator==(const SavedRun&) const = default;
};

std::string write_run_state(const SavedRun& saved);
// Reads the files of earlier versions too. Fails naming the key that is missing or wrong; `where` begins the
// text.
SavedRun parse_run_state(std::string_view json, std::string_view where);
// state.json of a checkpoint folder.
SavedRun read_run_state(const Path& checkpoint);

// Fails when something the run depends on has changed since it began, naming it and both fingerprints.
void check_fingerprints(const RunState& state, const std::map<std::string, std::string>& now);

}  // namespace ropd::train
