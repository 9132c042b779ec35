#include "train/trainer.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "base/stop.h"
#include "io/checkpoint.h"
#include "io/save_model.h"
#include "rollout/fingerprint.h"
#include "train/measurements.h"
#include "train/state_tensors.h"

namespace ropd::train {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

constexpr size_t kActivationBytes = size_t{2} << 30;  // when train.activation_memory_gb is auto

size_t activation_budget(const TrainConfig& config) {
  const auto& gigabytes = config.train.activation_memory_gb.value;
  return gigabytes ? static_cast<size_t>(*gigabytes * 1e9) : kActivationBytes;
}

// From this size of both models on, a phase gives its memory back when it ends: other phases may need it, and
// fresh pages cost nothing beside the work on them. With small models they would cost a tenth of an
// iteration.
constexpr uint64_t kLargeModelBytes = uint64_t{512} << 20;

bool are_large(const ModelPair& models) {
  return models.student->num_bytes() + models.teacher->num_bytes() >= kLargeModelBytes;
}

Path starting_model(const TrainConfig& config) {
  if (!config.continue_from) return config.student;
  io::verify_checkpoint(*config.continue_from);
  return Path(*config.continue_from) / "model";
}

uint64_t starting_step(const TrainConfig& config) {
  if (!config.continue_from) return 0;
  const Path path = Path(*config.continue_from) / "state.json";
  return parse_run_state(read_file(path), path.string()).step;
}

FloatStorage trigger_vector(const TrainConfig& config, const io::RunDirectory& directory, size_t size) {
  return config.trigger.storage == Storage::file ? FloatStorage(size, directory.path()) : FloatStorage(size);
}

std::string data_fingerprint(const QuerySet& queries) {
  return queries.queries.empty() ? "none" : queries.fingerprint;
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
                 const QuerySet& queries, TrainerHooks hooks)
    : config_(config),
      directory_(directory),
      models_(models),
      queries_(queries),
      hooks_(std::move(hooks)),
      objective_(objective_config(config, models.eos_ids)),
      student_(model::Parameters::load(io::ModelDirectory(starting_model(config)))),
      weights_(student_.weights()),
      first_moment_(student_.values().size()),
      second_moment_(student_.values().size()),
      optimizer_(adamw_settings(config), first_moment_.values(), second_moment_.values()),
      curriculum_(make_curriculum(config, starting_step(config))),
      is_large_(are_large(models)),
      supply_(config, directory, models, queries, is_large_) {
  for (const auto& slot : student_.slots())
    tensors_.push_back({slot.name, static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size)});
  if (curriculum_.can_watch()) {
    trigger_running_ = trigger_vector(config, directory, student_.values().size());
    trigger_previous_ = trigger_vector(config, directory, student_.values().size());
    trigger_ =
        std::make_unique<curriculum::GradientTrigger>(trigger_running_.values(), trigger_previous_.values());
  }
  translation_ = models.translation([this](const std::string& id) -> const Query& { return query_of(id); });
  state_.fingerprints["queries"] = data_fingerprint(queries);
  state_.fingerprints["student"] = rollout::weights_fingerprint(model::map_weights(models.student));
  models.student->release_pages();
  state_.fingerprints["teacher"] = rollout::weights_fingerprint(models.teacher_weights);
  models.teacher->release_pages();
  if (config.continue_from) {
    const Path from = *config.continue_from;
    const RunState before = parse_run_state(read_file(from / "state.json"), (from / "state.json").string());
    if (before.minibatches != 0)
      fail(from.string(),
           ": taken in the middle of an iteration; continue from a checkpoint between iterations");
    state_.step = before.step;
    state_.updates = before.updates;
    const RestoredVector moments[] = {{"exp_avg", first_moment_.values()},
                                      {"exp_avg_sq", second_moment_.values()}};
    load_vectors(from / "optimizer.safetensors", moments, tensors_);
    optimizer_ =
        optim::AdamW(adamw_settings(config), first_moment_.values(), second_moment_.values(), before.updates);
  }
}

void Trainer::give_back(model::Workspace& workspace) const {
  if (!is_large_) return;
  workspace = {};
  malloc_trim(0);
}

void Trainer::give_back_teacher() {
  give_back(teacher_workspace_);
  if (is_large_) models_.teacher->release_pages();
}

const Query& Trainer::query_of(const std::string& id) const {
  for (const TrainingQuery& entry : queries_.queries)
    if (entry.query.id == id) return entry.query;
  fail("query ", id,
       " of a bank is not among the run's queries; a teacher with another tokenizer needs its text");
}

std::optional<IterationRecord> Trainer::iterate() {
  const Stopwatch total;
  if (!open_) {
    if (!take_rollouts()) return std::nullopt;  // samples now, or reads stored text
    auto& [rollouts, source, supervision, record] = *open_;
    measure_batch(record, rollouts, state_.step);
    if (config_.train.rescore == Rescore::iteration) {
      const auto scores = score(rollouts, record);  // candidates, coefficients, old policy: fixed from here
      for (size_t i = 0; i < rollouts.size(); ++i)
        supervision.push_back(distill::supervise(scores[i], rollouts[i], objective_));
      record.distillation = measure_distillation(scores, supervision);
    }
  }
  bool was_stopped = false;
  train_minibatches(was_stopped);
  if (was_stopped) {
    open_->record.seconds.total += total.seconds();  // saved with it; the next session adds its own
    return std::nullopt;
  }

  IterationRecord record = std::move(open_->record);
  record.steps = std::move(open_steps_);
  const auto comparison = curriculum_.is_watching() ? trigger_->compare() : curriculum::Comparison{};
  record.trigger = curriculum_.close_iteration(comparison);  // may switch the source from the next one on
  state_.curriculum = curriculum_.state();
  if (trigger_) state_.trigger = trigger_->state();
  state_.minibatches = 0;
  open_.reset();
  open_steps_.clear();
  record.seconds.total += total.seconds();
  finish_record(record);
  return record;
}

bool Trainer::take_rollouts() {
  const uint64_t iteration = this->iteration();
  const Source& source = curriculum_.source_of(iteration);  // for all minibatches
  const Stopwatch watch;
  if (curriculum_.uses_initial_bank() && !supply_.make_initial_bank()) return false;
  for (const uint64_t step : curriculum_.freeze_steps())
    if (step == state_.step && !supply_.freeze_recent_bank(weights_, step)) return false;
  RunState after = state_;
  SuppliedRollouts supplied = supply_.take(source, iteration, weights_, after);
  if (!supplied.is_complete) return false;
  state_ = std::move(after);

  OpenIteration open;
  open.record.iteration = iteration;
  open.record.stage = curriculum_.stage_of(iteration);
  open.record.source = source_name(source);
  open.record.policy_step = state_.step;
  models_.student->release_pages();  // an initial bank or its check has read them
  if (is_large_) malloc_trim(0);     // the packed weights
  open.record.seconds.refresh = supplied.packing_seconds;
  open.record.seconds.rollout = watch.seconds() - supplied.packing_seconds;
  if (supplied.sampled_tokens > 0)
    open.record.rollout_tokens_per_second =
        static_cast<double>(supplied.sampled_tokens) / std::max(supplied.sampling_seconds, 1e-9);
  sampled_scores_.clear();
  for (const size_t i : batch_order(supplied.rollouts, config_)) {
    if (!supplied.scores.empty()) sampled_scores_.push_back(std::move(supplied.scores[i]));
    open.rollouts.push_back(std::move(supplied.rollouts[i]));
    open.source.push_back(supplied.source[i]);
  }
  open_ = std::move(open);
  return true;
}

// Scores taken while sampling have the bits of a pass over the finished responses, so that pass is left out.
std::vector<Scores> Trainer::score_student(std::span<const Rollout> rollouts,
                                           const distill::ScoringConfig& config,
                                           const distill::ScoringProgress& progress) {
  std::vector<Scores> scores = std::exchange(sampled_scores_, {});
  if (!scores.empty()) {
    if (distill::agree_with_pass(scores, weights_, rollouts, config, workspace_)) return scores;
    log_warning("iteration ", iteration(),
                ": scores taken while sampling differ from a pass over the same responses; using the pass "
                "(please report this: they should be equal to the last bit)");
  }
  return distill::score_student(weights_, rollouts, config, workspace_, progress);
}

std::vector<Scores> Trainer::score(std::span<const Rollout> rollouts, IterationRecord& record) {
  const auto progress = [&](const char* stage) -> distill::ScoringProgress {
    return [this, stage, total = rollouts.size()](size_t done, uint64_t tokens) {
      if (hooks_.on_progress) hooks_.on_progress(stage, done, total, tokens);
    };
  };
  distill::ScoringConfig config{.top_k = config_.objective.top_k,
                                .precision = config_.train.precision,
                                .temperature = static_cast<float>(config_.rollout.temperature)};
  const Stopwatch student_watch;
  auto scores = score_student(rollouts, config, progress("student scores"));
  give_back(workspace_);
  record.seconds.score_student += student_watch.seconds();
  const Stopwatch teacher_watch;
  config.precision = config_.train.teacher_precision;
  config.temperature = static_cast<float>(config_.objective.teacher_temperature);
  distill::score_teacher(scores, models_.teacher_weights, rollouts, config, teacher_workspace_,
                         translation_ ? &*translation_ : nullptr, progress("teacher scores"));
  give_back_teacher();
  record.seconds.score_teacher += teacher_watch.seconds();
  // Of stored text the student has moved away since: that is no drift.
  if (curriculum_.source_of(iteration()).needs_current() && state_.step == record.policy_step)
    measure_drift(record, rollouts, scores);
  return scores;
}

void Trainer::train_minibatches(bool& was_stopped) {
  auto& [rollouts, source, supervision, record] = *open_;
  const auto sizes = minibatch_sizes(rollouts.size(), config_.train.minibatch);
  size_t begin = 0;
  for (size_t m = 0; m < sizes.size(); begin += sizes[m++]) {
    if (m < state_.minibatches) continue;  // done before a restart
    if (stop_requested() && m > 0) {
      was_stopped = true;
      return;
    }
    const Stopwatch watch;
    std::vector<distill::Supervision> fresh;
    DistillationMeans means;
    const auto part = std::span(rollouts).subspan(begin, sizes[m]);
    if (config_.train.rescore == Rescore::minibatch) {
      const auto scores = score(part, record);
      for (size_t i = 0; i < part.size(); ++i)
        fresh.push_back(distill::supervise(scores[i], part[i], objective_));
      means = measure_distillation(scores, fresh);
    }
    std::vector<ScoredRollout> minibatch;
    for (size_t i = 0; i < sizes[m]; ++i)
      minibatch.push_back({&part[i], fresh.empty() ? &supervision[begin + i] : &fresh[i], source[begin + i]});
    StepRecord step = update(minibatch);
    step.minibatch = static_cast<uint32_t>(m);
    step.distillation = fresh.empty() ? record.distillation : means;
    if (!fresh.empty()) {  // the iteration's means are those of its minibatches
      const double share = static_cast<double>(sizes[m]) / static_cast<double>(rollouts.size());
      auto into = [&](double DistillationMeans::*member) {
        record.distillation.*member += share * means.*member;
      };
      for (auto member :
           {&DistillationMeans::student_mass, &DistillationMeans::teacher_mass, &DistillationMeans::overlap,
            &DistillationMeans::kl_candidates, &DistillationMeans::kl_sampled, &DistillationMeans::entropy,
            &DistillationMeans::masked_fraction})
        into(member);
    }
    ++state_.minibatches;
    record.seconds.update += watch.seconds();
    open_steps_.push_back(step);
    if (hooks_.on_step) hooks_.on_step(step);
    if (hooks_.on_progress) hooks_.on_progress("updates", m + 1, sizes.size(), step.tokens);
  }
}

distill::MicrobatchResult Trainer::accumulate(model::Gradients& gradients, const Microbatch& microbatch,
                                              const distill::GradientConfig& config) {
  const distill::FullTeacher teacher{&models_.teacher_weights, config_.train.teacher_precision,
                                     &teacher_workspace_};
  if (!pass_) pass_.emplace(weights_, config_.train.precision, activation_budget(config_));
  const auto result = distill::accumulate_gradient(gradients, *pass_, weights_, microbatch.items, config,
                                                   config_.train.precision, teacher);
  if (is_large_) {  // also between microbatches: a trace keeps the size of the largest it has seen
    pass_.reset();
    malloc_trim(0);
    if (objective_.needs_full_teacher()) give_back_teacher();
  }
  return result;
}

StepRecord Trainer::update(std::span<const ScoredRollout> minibatch) {
  StepRecord record;
  record.iteration = iteration();
  record.source = open_->record.source;
  record.sequences = static_cast<uint32_t>(minibatch.size());
  record.scale = static_cast<double>(minibatch.size()) / static_cast<double>(config_.train.minibatch);
  record.learning_rate = config_.train.learning_rate;
  const bool is_only_minibatch =
      open_->rollouts.size() <= config_.train.minibatch || config_.train.rescore == Rescore::minibatch;

  Stopwatch gradient_watch;
  model::Gradients gradients(student_);
  distill::MicrobatchResult sum;
  distill::GradientConfig gradient_config{.objective = objective_, .old_is_current = is_only_minibatch};
  for (const Microbatch& microbatch : pack_minibatch(minibatch, config_)) {
    const auto part = accumulate(gradients, microbatch, gradient_config);
    ++record.microbatches;
    sum.weighted_loss += part.weighted_loss;
    sum.tokens += part.tokens;
    sum.clipped += part.clipped;
    sum.dual_clipped += part.dual_clipped;
    sum.clamped += part.clamped;
    sum.terms += part.terms;
    sum.policy_kl += part.policy_kl;
  }
  record.seconds_gradient = gradient_watch.seconds();
  record.tokens = sum.tokens;
  record.loss = sum.weighted_loss;
  const double terms = static_cast<double>(std::max<uint64_t>(sum.terms, 1));
  record.clip = {.clip_fraction = static_cast<double>(sum.clipped) / terms,
                 .dual_clip_fraction = static_cast<double>(sum.dual_clipped) / terms,
                 .clamp_fraction = static_cast<double>(sum.clamped) / terms,
                 .policy_kl = sum.policy_kl / static_cast<double>(std::max<uint64_t>(sum.tokens, 1))};

  record.grad_norm = optim::global_norm(gradients.values());
  record.step = ++state_.step;
  if (!std::isfinite(record.grad_norm) || !std::isfinite(record.loss)) {
    record.skipped = true;
    const auto found = optim::find_non_finite(gradients.values(), tensors_);
    record.skip_reason =
        found ? optim::describe(*found, gradients.values().size()) : "the loss is not finite";
    ++state_.skipped_steps;
    ++state_.skipped_in_a_row;
    if (config_.train.max_skipped_steps > 0 && state_.skipped_in_a_row >= config_.train.max_skipped_steps)
      fail("step ", record.step, ": ", state_.skipped_in_a_row,
           " steps in a row had a gradient that is not finite (", record.skip_reason,
           "; first rollout of the last one: query ", minibatch.front().rollout->query_id,
           "); the newest checkpoint is intact, try a lower train.learning_rate");
  } else {
    state_.skipped_in_a_row = 0;
    const Stopwatch trigger_watch;
    if (curriculum_.is_watching()) trigger_->observe(gradients.values(), record.scale);
    record.seconds_trigger = trigger_watch.seconds();
    const Stopwatch optimizer_watch;
    optimizer_.update(student_.values(), gradients.values(),
                      optim::clip_coefficient(record.grad_norm, config_.train.grad_clip));
    state_.updates = optimizer_.updates();
    record.seconds_optimizer = optimizer_watch.seconds();
  }
  if (trigger_) state_.trigger = trigger_->state();
  record.tokens_per_second = static_cast<double>(record.tokens) / std::max(gradient_watch.seconds(), 1e-9);
  return record;
}

void Trainer::finish_record(IterationRecord& record) {
  record.step = state_.step;
  double counted = 0;
  for (const StepRecord& step : record.steps) {
    if (step.skipped) continue;
    ++counted;
    record.loss += step.loss;
    record.grad_norm += step.grad_norm;
    const double share = static_cast<double>(step.sequences) / static_cast<double>(record.responses);
    record.clip.clip_fraction += share * step.clip.clip_fraction;
    record.clip.dual_clip_fraction += share * step.clip.dual_clip_fraction;
    record.clip.clamp_fraction += share * step.clip.clamp_fraction;
    record.clip.policy_kl += share * step.clip.policy_kl;
  }
  record.loss /= std::max(counted, 1.0);
  record.grad_norm /= std::max(counted, 1.0);
  const double tokens = static_cast<double>(record.response_tokens);
  record.tokens_per_second = tokens / std::max(record.seconds.total, 1e-9);
  record.score_tokens_per_second =
      tokens / std::max(record.seconds.score_student + record.seconds.score_teacher, 1e-9);
  record.update_tokens_per_second = tokens / std::max(record.seconds.update, 1e-9);
  record.peak_memory_bytes = peak_memory_bytes();
  record.consumed = state_.consumed;
  record.queries = state_.queries.size();
  record.rounds = state_.rounds;
  record.skipped_steps = state_.skipped_steps;
  if (!state_.first_length_mean) state_.first_length_mean = record.response_length_mean;
  record.alarms = find_alarms(record, config_.alarms, state_.first_length_mean);
}

void Trainer::save(const Path& folder) const {
  std::vector<io::StoredTensor> tensors;
  for (const auto& slot : student_.slots()) {
    const auto values =
        student_.values().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
    tensors.push_back({slot.name, DType::f32, slot.shape, std::as_bytes(values)});
  }
  io::save_model_directory(
      folder / "model",
      {.source_directory = config_.student,
       .config_json = models_.student->config_json(),
       .generation_config_json = models_.student->generation_config_json(),
       .base_model = config_.student,
       .description = "Distilled by ropd from " + config_.teacher + ", " + std::to_string(state_.step) +
                      " optimization steps; curriculum: " + curriculum_.describe() + "."},
      tensors);
  const SavedVector moments[] = {{"exp_avg", first_moment_.values()},
                                 {"exp_avg_sq", second_moment_.values()}};
  save_vectors(folder / "optimizer.safetensors", moments, tensors_);
  if (trigger_) {
    // By role, as the trigger tells it: closing an iteration exchanges the two.
    const SavedVector means[] = {{"running_mean", trigger_->running_mean()},
                                 {"previous_mean", trigger_->previous_mean()}};
    save_vectors(folder / "trigger.safetensors", means, tensors_);
  }
  write_file_atomically(folder / "state.json", write_run_state(state_));
  if (open_ && state_.minibatches > 0) save_open_iteration(folder, *open_);
}

void Trainer::restore(const Path& checkpoint, const std::vector<StepRecord>& open_steps) {
  const Path state_path = checkpoint / "state.json";
  const RunState saved = parse_run_state(read_file(state_path), state_path.string());
  check_fingerprints(saved, state_.fingerprints);
  const io::ModelDirectory model(checkpoint / "model");
  io::require_same_model(model.config(), model.path().string(), student_.config());
  const auto loaded = model::Parameters::load(model);
  std::copy(loaded.values().begin(), loaded.values().end(), student_.values().begin());
  const RestoredVector moments[] = {{"exp_avg", first_moment_.values()},
                                    {"exp_avg_sq", second_moment_.values()}};
  load_vectors(checkpoint / "optimizer.safetensors", moments, tensors_);
  optimizer_ =
      optim::AdamW(adamw_settings(config_), first_moment_.values(), second_moment_.values(), saved.updates);
  if (trigger_) {
    const RestoredVector means[] = {{"running_mean", trigger_->running_mean()},
                                    {"previous_mean", trigger_->previous_mean()}};
    load_vectors(checkpoint / "trigger.safetensors", means, tensors_);
    trigger_->restore(saved.trigger);
  }
  curriculum_.restore(saved.curriculum);
  state_ = saved;
  open_.reset();
  open_steps_.clear();
  if (state_.minibatches > 0) {
    open_ = load_open_iteration(checkpoint, student_.config().vocab_size);
    open_steps_ = open_steps;
  }
}

}  // namespace ropd::train
