// Where a run stands: state.json of a checkpoint. Together with the model, optimizer.safetensors and
// trigger.safetensors it determines everything that follows, bit for bit.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "curriculum/stages.h"
#include "curriculum/trigger.h"

namespace ropd::train {

struct RunState {
  uint64_t step = 0;          // optimization steps so far, skipped ones included
  uint64_t minibatches = 0;   // done in the open iteration; 0 between iterations
  uint64_t updates = 0;       // AdamW's own count, without skipped steps
  uint64_t next_request = 0;  // position in the stream of (query, sample)
  uint64_t consumed = 0;      // C
  uint64_t rounds = 0;        // M
  uint64_t skipped_steps = 0;
  uint64_t skipped_in_a_row = 0;
  std::set<std::string> queries;            // N = their number
  std::optional<double> first_length_mean;  // what the length alarm compares with
  curriculum::CurriculumState curriculum;
  curriculum::TriggerState trigger;
  std::map<std::string, uint64_t> bank_positions;  // source_name() -> next row
  std::map<std::string, std::string>
      fingerprints;  // of what must not change under a run: data, teacher, banks

  bool operator==(const RunState&) const = default;
};

std::string write_run_state(const RunState& state);
// Fails naming the key that is missing or wrong; `where` begins the text.
RunState parse_run_state(std::string_view json, std::string_view where);

// Fails when something the run depends on has changed since it began, naming it and both fingerprints.
void check_fingerprints(const RunState& state, const std::map<std::string, std::string>& now);

}  // namespace ropd::train
