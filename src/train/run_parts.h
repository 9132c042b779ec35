// The parts of a run that compute, over its models and settings: what every rank of it has. One local
// implementation of each seam, and around each the one that the leader drives, which spreads the work over the
// ranks.
#pragma once
#include <optional>

#include "comm/agreement.h"
#include "comm/crew.h"
#include "distill/crew_scorer.h"
#include "distill/local_scorer.h"
#include "model/bounded_model.h"
#include "rollout/crew_generator.h"
#include "rollout/local_generator.h"
#include "train/adapter_learner.h"
#include "train/crew_learner.h"
#include "train/model_pair.h"
#include "train/queries.h"
#include "train/train_config.h"

namespace ropd::train {

struct RunPartsOptions {
  bool has_statistics = false;                 // of gradients: a trigger may watch
  std::optional<Path> statistics_folder = {};  // their vectors in scratch files there
  std::optional<Path> optimizer_folder = {};   // AdamW's moments likewise
  distill::StageProgress progress = {};
};

class RunParts {
 public:
  // References must outlive it. The student starts from config.student.
  RunParts(const TrainConfig& config, const ModelPair& models, const QuerySet& queries, comm::Crew& crew,
           const RunPartsOptions& options);
  RunParts(const RunParts&) = delete;  // the parts refer to each other
  RunParts& operator=(const RunParts&) = delete;

  // this rank's
  const std::unique_ptr<FlatLearner> owned_learner;
  FlatLearner& learner;
  rollout::LocalGenerator generator;
  rollout::LocalGenerator evaluator;  // of responses to the suite of config.eval
  model::BoundedModel teacher;
  distill::LocalScorer scorer;
  // of all ranks
  rollout::CrewGenerator crew_generator, crew_evaluator;
  distill::CrewScorer crew_scorer;
  CrewLearner crew_learner;

 private:
  // Ranks that have the teacher score while the others sample, where they are not all.
  rollout::Bystanders early_scoring(const TrainConfig& config, const ModelPair& models, comm::Crew& crew);
};

// What ranks must agree on whatever they do: native bf16 changes bits, so does another version.
comm::Facts program_facts();

// The leader, before it makes its own parts: has every other rank make the same, of the same models. Fails,
// naming rank and difference, when program, instruction set, settings or files differ.
void call_to_run(comm::Crew& crew, const TrainConfig& config, const ModelPair& models, bool has_statistics);

// The other ranks: take part in a run until the leader dismisses them; its exit code. They read models and
// queries where the leader's settings say, and nothing of the run's folder. `own`: the settings this rank was
// started with, where it was; they must be the leader's.
int assist_run(comm::Crew& crew, const std::optional<TrainConfig>& own = {});

}  // namespace ropd::train
