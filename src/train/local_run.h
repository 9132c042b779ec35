// The parts of a run that computes in this process: one local implementation of each seam, over the models
// and settings of a run.
#pragma once
#include "distill/local_scorer.h"
#include "io/run_directory.h"
#include "model/bounded_model.h"
#include "rollout/local_generator.h"
#include "train/adapter_learner.h"
#include "train/model_pair.h"
#include "train/rollout_supply.h"
#include "train/trainer.h"

namespace ropd::train {

class LocalRun {
 public:
  // References must outlive the run. The student starts from config.student, or from config.continue_from
  // (weights and optimizer).
  LocalRun(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
           const QuerySet& queries, const distill::StageProgress& progress = {});
  LocalRun(const LocalRun&) = delete;  // the parts refer to each other
  LocalRun& operator=(const LocalRun&) = delete;

  const std::unique_ptr<FlatLearner> owned_learner;
  FlatLearner& learner;
  rollout::LocalGenerator generator;
  model::BoundedModel teacher;
  distill::LocalScorer scorer;
  RolloutSupply supply;
  RunState start;  // what the trainer begins with

  TrainerSeams seams() { return {supply, scorer, learner}; }
};

}  // namespace ropd::train
