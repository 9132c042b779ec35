#include "train/trainer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "optim/clip.h"
#include "train/batch_order.h"
#include "train/measurements.h"

namespace ropd::train {
namespace {

// The old policy is the current one when every minibatch is scored by the weights that it changes.
distill::GradientConfig gradient_config(const TrainConfig& config, std::vector<Token> eos_ids,
                                        std::function<void(double share)> progress) {
  return {.objective = objective_config(config, std::move(eos_ids)),
          .old_is_current = steps_per_iteration(config) == 1 || config.train.rescore == Rescore::minibatch,
          .progress = std::move(progress)};
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const TrainerSeams& seams, RunState start, TrainerHooks hooks)
    : config_(config),
      supply_(seams.supply),
      scorer_(seams.scorer),
      learner_(seams.learner),
      hooks_(std::move(hooks)),
      gradient_config_(
          gradient_config(config, supply_.eos_ids(), [this](double share) { tell_updates(share); })),
      curriculum_(make_curriculum(config, start.step)),
      state_(std::move(start)) {}

std::optional<IterationRecord> Trainer::iterate() {
  const Stopwatch watch;
  if (!open_ && !take_rollouts()) return std::nullopt;  // sampled now, or stored text
  for (const MinibatchRange& range : minibatches_left()) {
    if (stop_requested() && open_->minibatches > 0) {
      open_->record.seconds.total += watch.seconds();  // saved with it; the next session adds its own
      return std::nullopt;
    }
    if (open_->supervision.empty())
      supervise(range);  // candidates, coefficients, old policy: fixed from here
    const auto minibatch = pack_shards(open_->minibatch(range), config_);  // the reduction's token weights
    StepRecord step = begin_step(range);
    if (open_->minibatches == 0) tell_updates(0);
    const MinibatchGradient gradient =
        timed(step.seconds_gradient, [&] { return learner_.gradient(minibatch, gradient_config_, scorer_); });
    if (hooks_.before_change) hooks_.before_change();
    if (gradient.is_finite()) {
      if (curriculum_.is_watching()) timed(step.seconds_trigger, [&] { learner_.observe(step.scale); });
      const double clip = optim::clip_coefficient(gradient.norm, config_.train.grad_clip);
      timed(step.seconds_optimizer, [&] { learner_.update(step.learning_rate, clip); });
    }
    end_step(std::move(step), gradient);
  }
  IterationRecord record = take_record();
  curriculum::Evidence evidence = curriculum::evidence_of(record);
  if (curriculum_.is_watching()) evidence.gradients = learner_.compare();
  record.trigger = curriculum_.close_iteration(evidence);  // may switch the source from the next one on
  record.seconds.total += watch.seconds();
  measure_steps(record);
  return record;
}

bool Trainer::take_rollouts() {
  OpenIteration open;
  const uint64_t iteration = this->iteration();
  const Source source = curriculum_.source_of(iteration);  // for all minibatches
  const Stopwatch watch;
  if (curriculum_.uses_initial_bank() && !supply_.make_initial_bank()) return false;
  for (const uint64_t step : curriculum_.freeze_steps())
    if (step == state_.step && !supply_.freeze_recent_bank(step)) return false;
  SuppliedRollouts supplied = supply_.take(source, iteration, state_.step);
  if (!supplied.is_complete) return false;

  IterationRecord& record = open.record;
  record.iteration = iteration;
  record.stage = curriculum_.stage_of(iteration);
  record.source = source_name(source);
  record.policy_step = state_.step;
  record.seconds.refresh = supplied.packing_seconds;
  record.seconds.rollout = watch.seconds() - supplied.packing_seconds;
  if (supplied.sampled_tokens > 0)
    record.rollout_tokens_per_second =
        static_cast<double>(supplied.sampled_tokens) / std::max(supplied.sampling_seconds, 1e-9);
  for (const size_t i : batch_order(supplied.rollouts, config_.train)) {
    if (!supplied.scores.empty()) open.sampled.push_back(std::move(supplied.scores[i]));
    open.rollouts.push_back(std::move(supplied.rollouts[i]));
    open.source.push_back(supplied.source[i]);
  }
  measure_batch(record, open.rollouts, state_.step);
  open_ = std::move(open);
  return true;
}

std::vector<MinibatchRange> Trainer::minibatches_left() const {
  auto ranges = split(open_->rollouts.size(), config_.train.minibatch);
  ranges.erase(ranges.begin(), ranges.begin() + static_cast<ptrdiff_t>(open_->minibatches));
  return ranges;
}

// Scores the whole batch, or the next minibatch where each is scored by the weights that it changes.
void Trainer::supervise(const MinibatchRange& minibatch) {
  OpenIteration& open = *open_;
  const MinibatchRange range =
      config_.train.rescore == Rescore::minibatch ? minibatch : MinibatchRange{0, open.rollouts.size()};
  const auto rollouts = std::span(open.rollouts).subspan(range.begin, range.size());
  const auto scoring = scorer_.score(rollouts, std::exchange(open.sampled, {}));
  open.first_supervised = range.begin;
  for (size_t i = 0; i < rollouts.size(); ++i)
    open.supervision.push_back(
        distill::supervise(scoring.scores[i], rollouts[i], gradient_config_.objective));

  open.record.seconds.score_student += scoring.student_seconds;
  open.record.seconds.score_teacher += scoring.teacher_seconds;
  open.means = measure_distillation(scoring.scores, open.supervision);
  add_share(open.record.distillation, open.means,
            static_cast<double>(range.size()) / static_cast<double>(open.rollouts.size()));
  // Of stored text the student has moved away since: that is no drift.
  if (curriculum_.source_of(iteration()).needs_current() && state_.step == open.record.policy_step)
    measure_drift(open.record, rollouts, scoring.scores);
  if (hooks_.on_scored) hooks_.on_scored(open.record.iteration, rollouts, scoring.scores);
}

void Trainer::count_teacher_reads() {
  const model::StreamCounts now = scorer_.streamed(), before = std::exchange(teacher_reads_, now);
  if (now.passes == before.passes) return;
  IterationRecord& record = open_->record;
  record.teacher_passes = record.teacher_passes.value_or(0) + now.passes - before.passes;
  record.teacher_read_bytes = record.teacher_read_bytes.value_or(0) + now.bytes - before.bytes;
}

StepRecord Trainer::begin_step(const MinibatchRange& minibatch) const {
  StepRecord step;
  step.step = state_.step + 1;
  step.iteration = iteration();
  step.minibatch = static_cast<uint32_t>(open_->minibatches);
  step.source = open_->record.source;
  step.sequences = static_cast<uint32_t>(minibatch.size());
  step.scale = static_cast<double>(minibatch.size()) / static_cast<double>(config_.train.minibatch);
  step.learning_rate = config_.train.learning_rate;
  step.distillation = open_->means;
  return step;
}

void Trainer::end_step(StepRecord step, const MinibatchGradient& gradient) {
  measure_gradient(step, gradient);
  count_teacher_reads();  // of scoring, and of gradients of objectives over whole rows
  count_step(step);
  ++open_->minibatches;
  if (config_.train.rescore == Rescore::minibatch) open_->supervision.clear();
  open_->record.steps.push_back(step);
  if (hooks_.on_step) hooks_.on_step(step);
  tell_updates(0);
}

// `share`: of the minibatch in work.
void Trainer::tell_updates(double share) const {
  if (!hooks_.on_progress) return;
  uint64_t tokens = 0;
  for (const StepRecord& step : open_->record.steps) tokens += step.tokens;
  hooks_.on_progress("updates", static_cast<double>(open_->minibatches) + share, steps_per_iteration(config_),
                     tokens);
}

void Trainer::count_step(const StepRecord& step) {
  state_.step = step.step;
  state_.skipped_in_a_row = step.skipped ? state_.skipped_in_a_row + 1 : 0;
  state_.skipped_steps += step.skipped;
  if (config_.train.max_skipped_steps == 0 || state_.skipped_in_a_row < config_.train.max_skipped_steps)
    return;
  const size_t first = open_->minibatches * config_.train.minibatch;
  fail("step ", step.step, ": ", state_.skipped_in_a_row,
       " steps in a row had a gradient that is not finite (", step.skip_reason,
       "; first rollout of the last one: query ", open_->rollouts[first].query_id,
       "); they changed nothing, but the weights may have diverged before: try a lower train.learning_rate, "
       "from "
       "an older checkpoint (continue_from) where the newest is diverged too");
}

IterationRecord Trainer::take_record() {
  IterationRecord record = std::move(open_->record);
  open_.reset();
  record.step = state_.step;
  record.skipped_steps = state_.skipped_steps;
  record.consumed = supply_.state().consumed;
  record.queries = supply_.state().queries.size();
  record.rounds = supply_.state().rounds;
  return record;
}

Trainer::Snapshot Trainer::snapshot() const {
  SavedRun saved{state_, open_ ? open_->minibatches : 0, supply_.state(), curriculum_.state(), {}};
  std::string description = "Distilled by ropd from " + config_.teacher + ", " + std::to_string(state_.step) +
                            " optimization steps; curriculum: " + curriculum_.describe() + ".";
  return [this, saved = std::move(saved), description = std::move(description)](const Path& folder) mutable {
    saved.learner = learner_.save(folder, description);
    write_file_atomically(folder / "state.json", write_run_state(saved));
    if (saved.minibatches > 0) save_open_iteration(folder, *open_);
  };
}

void Trainer::restore(const Path& checkpoint, const std::vector<StepRecord>& open_steps) {
  const SavedRun saved = read_run_state(checkpoint);
  check_fingerprints(saved.run, state_.fingerprints);
  learner_.restore(checkpoint, saved.learner);
  supply_.restore(saved.supply);
  curriculum_.restore(saved.curriculum);
  state_ = saved.run;
  open_.reset();
  if (saved.minibatches == 0) return;
  open_ = load_open_iteration(checkpoint, supply_.vocab_size());
  // The last minibatch closes an iteration, so one that is open has some left.
  if (const size_t count = split(open_->rollouts.size(), config_.train.minibatch).size();
      saved.minibatches >= count)
    fail((checkpoint / "state.json").string(), ": ", saved.minibatches,
         " minibatches are done of an open iteration that has ", count, " (damaged, or changed by hand)");
  open_->minibatches = saved.minibatches;
  open_->means = open_->record.distillation;
  open_->record.steps = open_steps;
}

}  // namespace ropd::train
