// The parts of a run at its leader, or alone: those that compute (train/run_parts.h) and the supply of rollouts
// over the run's folder.
#pragma once
#include "io/run_directory.h"
#include "train/rollout_supply.h"
#include "train/run_parts.h"
#include "train/trainer.h"

namespace ropd::train {

class LocalRun : public RunParts {
 public:
  // References must outlive the run. The student starts from config.student, or from config.continue_from
  // (weights and optimizer). The other ranks of the crew have been called (call_to_run).
  LocalRun(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
           const QuerySet& queries, const distill::StageProgress& progress = {},
           comm::Crew& crew = comm::solo_crew());

  // Whether a trigger may watch the gradients of this run.
  static bool has_statistics(const TrainConfig& config);

  RolloutSupply supply;
  RunState start;  // what the trainer begins with

  TrainerSeams seams() { return {supply, crew_scorer, crew_learner}; }
};

}  // namespace ropd::train
