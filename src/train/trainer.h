// The training loop of the method: Trainer::iterate is section 2 of method.md. It owns the student's
// parameters, the optimizer, the trigger and the curriculum, and knows nothing of consoles, metrics files or
// checkpoints' places: it returns records and can write its whole state into a folder.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "curriculum/stages.h"
#include "curriculum/trigger.h"
#include "distill/gradient.h"
#include "distill/scoring.h"
#include "model/forward.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "records/metrics.h"
#include "tensor/float_storage.h"
#include "train/minibatch.h"
#include "train/model_pair.h"
#include "train/open_iteration.h"
#include "train/queries.h"
#include "train/rollout_supply.h"
#include "train/run_state.h"
#include "train/train_config.h"

namespace ropd::train {

// What a trainer tells while it works; both may be empty.
struct TrainerHooks {
  std::function<void(const StepRecord&)> on_step;  // after every optimization step
  std::function<void(const char* stage, uint64_t done, uint64_t total, uint64_t tokens)>
      on_progress;  // inside a stage
};

class Trainer {
 public:
  // References must outlive the trainer. Starts from config.student, or from config.continue_from (weights
  // and optimizer).
  Trainer(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
          const QuerySet& queries, TrainerHooks hooks = {});

  // Goes on from a checkpoint written by save().
  void restore(const Path& checkpoint, const std::vector<StepRecord>& open_steps);
  // Model directory, optimizer, trigger, state and, in the middle of an iteration, what it has fixed.
  void save(const Path& folder) const;

  bool is_done() const { return curriculum_.is_done(); }
  uint64_t iteration() const {
    return curriculum_.state().closed_iterations + 1;
  }  // the next or open one, from 1
  const RunState& state() const { return state_; }
  const curriculum::Curriculum& curriculum() const { return curriculum_; }

  // One iteration. Nothing when a stop request ended it early: the state is whole, save() it and go on later.
  std::optional<IterationRecord> iterate();

  model::Parameters& student() { return student_; }

 private:
  // constant after construction
  const TrainConfig& config_;
  const io::RunDirectory& directory_;
  const ModelPair& models_;
  const QuerySet& queries_;
  const TrainerHooks hooks_;
  const distill::ObjectiveConfig objective_;
  // what training changes
  model::Parameters student_;
  const model::Weights weights_;  // views of student_
  FloatStorage first_moment_, second_moment_;
  optim::AdamW optimizer_;
  FloatStorage trigger_running_, trigger_previous_;  // empty when no iteration is watched
  std::unique_ptr<curriculum::GradientTrigger> trigger_;
  curriculum::Curriculum curriculum_;
  RunState state_;
  std::optional<OpenIteration> open_;
  std::vector<Scores> sampled_scores_;  // of open_->rollouts until they are scored, where the supply has them
  std::vector<StepRecord> open_steps_;
  // memory of one phase each (plan.h); with large models given back when the phase ends
  const bool is_large_;
  std::optional<model::TrainingPass> pass_;
  model::Workspace workspace_, teacher_workspace_;
  // parts
  RolloutSupply supply_;
  std::optional<distill::TeacherTranslation> translation_;
  std::vector<optim::TensorRange> tensors_;

  bool take_rollouts();
  std::vector<Scores> score(std::span<const Rollout> rollouts, IterationRecord& record);
  std::vector<Scores> score_student(std::span<const Rollout> rollouts, const distill::ScoringConfig& config,
                                    const distill::ScoringProgress& progress);
  StepRecord update(std::span<const ScoredRollout> minibatch);
  void train_minibatches(bool& was_stopped);
  void finish_record(IterationRecord& record);
  distill::MicrobatchResult accumulate(model::Gradients& gradients, const Microbatch& microbatch,
                                       const distill::GradientConfig& config);
  void give_back(model::Workspace& workspace) const;
  void give_back_teacher();
  const Query& query_of(const std::string& id) const;
};

}  // namespace ropd::train
