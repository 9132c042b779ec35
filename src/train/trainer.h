// The training loop of the method: Trainer::iterate is section 2 of method.md. It knows what happens in an
// iteration, never where: who samples, scores and learns stands behind three seams (docs/architecture.md). It
// knows nothing of consoles, metrics files or checkpoints' places: it returns records and can write its whole
// state into a folder.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "curriculum/stages.h"
#include "distill/scorer.h"
#include "records/metrics.h"
#include "train/learner.h"
#include "train/open_iteration.h"
#include "train/rollout_supply.h"
#include "train/run_state.h"
#include "train/train_config.h"

namespace ropd::train {

// What a trainer tells while it works; each may be empty.
struct TrainerHooks {
  std::function<void()> before_change;             // of the learner, where a snapshot may still be read
  std::function<void(const StepRecord&)> on_step;  // after every optimization step
  distill::StageProgress on_progress;              // when a stage begins, and inside it
  std::function<void(uint64_t iteration, std::span<const Rollout>, std::span<const Scores>)>
      on_scored;  // by both models; a batch, or each minibatch where every one is scored anew
};

// Who does the work.
struct TrainerSeams {
  RolloutSupply& supply;  // of a rollout::Generator's responses
  distill::Scorer& scorer;
  Learner& learner;
};

class Trainer {
 public:
  // References must outlive the trainer. `start`: where the learner stands, step 0 unless the run continues
  // another one.
  Trainer(const TrainConfig& config, const TrainerSeams& seams, RunState start, TrainerHooks hooks = {});
  Trainer(const Trainer&) = delete;  // its gradients tell it how far they are
  Trainer& operator=(const Trainer&) = delete;

  // Goes on from a checkpoint written by save(). open_steps: those of an iteration that was saved in the
  // middle.
  void restore(const Path& checkpoint, const std::vector<StepRecord>& open_steps);
  // What going on from here needs: the learner's files, state.json and, in the middle of an iteration, what it
  // has fixed. Writes it into a folder, once, on any thread, until the iteration goes on; between two iterations
  // until TrainerHooks::before_change has returned.
  using Snapshot = std::function<void(const Path& folder)>;
  [[nodiscard]] Snapshot snapshot() const;
  void save(const Path& folder) const { snapshot()(folder); }

  // One iteration. Nothing when a stop request ended it early: the state is whole, save() it and go on later.
  std::optional<IterationRecord> iterate();

  bool is_done() const { return curriculum_.is_done(); }
  uint64_t iteration() const { return curriculum_.closed_iterations() + 1; }  // next or open, from 1
  bool is_between_iterations() const { return !open_ || open_->minibatches == 0; }
  uint64_t step() const { return state_.step; }
  uint64_t consumed() const { return supply_.state().consumed; }
  const curriculum::Curriculum& curriculum() const { return curriculum_; }

 private:
  // constant after construction
  const TrainConfig& config_;
  RolloutSupply& supply_;
  distill::Scorer& scorer_;
  Learner& learner_;
  const TrainerHooks hooks_;
  const distill::GradientConfig gradient_config_;
  // where the run stands
  curriculum::Curriculum curriculum_;
  RunState state_;
  std::optional<OpenIteration> open_;
  model::StreamCounts teacher_reads_;  // of the scorer, as far as a record has them

  bool take_rollouts();
  std::vector<MinibatchRange> minibatches_left() const;
  void supervise(const MinibatchRange& minibatch);
  StepRecord begin_step(const MinibatchRange& minibatch) const;
  void end_step(StepRecord step, const MinibatchGradient& gradient);
  void tell_updates(double share) const;
  void count_step(const StepRecord& step);
  void count_teacher_reads();
  IterationRecord take_record();
};

}  // namespace ropd::train
