// What would make a run fit into the memory of a machine: of all combinations of settings that save memory the
// cheapest one that fits, first by what it changes (nothing; the order of sums; what is trained), then by the
// time that an iteration takes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "train/plan.h"

namespace ropd::train {

struct ProposedSetting {
  std::string setting;  // key=value
  std::string cost;     // what it costs, in words
};

struct Proposal {
  std::vector<ProposedSetting> settings;
  Plan plan;  // with them
  bool fits() const { return plan.memory_bytes <= plan.available_bytes; }
};

// Nothing when the run fits as it is. Where no combination fits: the one that needs least.
std::optional<Proposal> propose(const TrainConfig& config, const Machine& machine);

// A line for each setting, with its cost.
std::string proposal_text(const Proposal& proposal);
// In one line, for an error.
std::string proposal_sentence(const Proposal& proposal);

// Fails when memory or disk cannot suffice, with the numbers and the proposal.
void check_fits(const TrainConfig& config, const Machine& machine = {});

// Low-rank adapters on all projections of the layers.
Trainable adapter_of_rank(const ModelConfig& student, uint64_t rank);

}  // namespace ropd::train
