#include "train/full_learner.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "base/memory_info.h"
#include "train/state_tensors.h"

namespace ropd::train {
namespace {

// The vectors of a checkpoint: one list each for saving and loading.
constexpr const char *kFirstMoment = "exp_avg", *kSecondMoment = "exp_avg_sq", *kRunningMean = "running_mean",
                     *kPreviousMean = "previous_mean";

std::vector<optim::TensorRange> tensor_ranges(std::span<const model::ParameterSlot> slots) {
  std::vector<optim::TensorRange> tensors;
  for (const auto& slot : slots)
    tensors.push_back({slot.name, static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size)});
  return tensors;
}

}  // namespace

FlatLearner::FlatLearner(model::Weights weights, std::span<float> values,
                         std::vector<model::ParameterSlot> slots, LearnerConfig config)
    : config_(std::move(config)),
      slots_(std::move(slots)),
      tensors_(tensor_ranges(slots_)),
      values_(values),
      weights_(std::move(weights)),
      first_moment_(values.size()),
      second_moment_(values.size()),
      optimizer_(config_.adamw, first_moment_.values(), second_moment_.values()) {
  weights_.execution.keeps_memory = config_.keeps_memory;
  if (!config_.has_statistics) return;
  const auto vector = [&] {
    const size_t size = values_.size();
    return config_.statistics_folder ? FloatStorage(size, *config_.statistics_folder) : FloatStorage(size);
  };
  running_mean_ = vector();
  previous_mean_ = vector();
  statistics_.emplace(running_mean_.values(), previous_mean_.values());
}

model::Gradients& FlatLearner::provide_gradient() {
  if (!gradient_) gradient_.emplace(slots_, weights_.config.num_layers);
  return *gradient_;
}

// The norm, and whether the gradient may be used.
MinibatchGradient FlatLearner::judge(MinibatchGradient result) {
  result.norm = optim::global_norm(gradient_->values());
  if (!std::isfinite(result.norm) || !std::isfinite(result.sums.weighted_loss)) {
    const auto found = optim::find_non_finite(gradient_->values(), tensors_);
    result.not_finite =
        found ? optim::describe(*found, gradient_->values().size()) : "the loss is not finite";
    if (!config_.keeps_memory) gradient_.reset();
  }
  return result;
}

MinibatchGradient FlatLearner::gradient(std::span<const distill::Shard> minibatch,
                                        const distill::GradientConfig& config, distill::Scorer& scorer) {
  distill::GradientConfig own = config;
  own.precision = config_.precision;
  own.trace_budget_bytes = config_.activation_bytes;
  MinibatchGradient result;
  for (const distill::Shard& shard : minibatch) result.microbatches += static_cast<uint32_t>(shard.size());
  result.sums = distill::minibatch_gradient(
      provide_gradient(), memory_, weights_, minibatch, own,
      [&](std::span<const distill::TrainingItem> items) { return scorer.teacher_rows(items); });
  return judge(result);
}

// One chain from zero over all microbatches.
MinibatchGradient FlatLearner::gradient(std::span<const distill::SupervisedMicrobatch> minibatch) {
  provide_gradient().clear();
  MinibatchGradient result{.microbatches = static_cast<uint32_t>(minibatch.size())};
  for (const distill::SupervisedMicrobatch& microbatch : minibatch) {
    if (!pass_) pass_.emplace(config_.precision, config_.activation_bytes);
    result.sums.weighted_loss +=
        distill::accumulate_supervised(*gradient_, *pass_, weights_, microbatch, config_.precision);
    if (config_.keeps_memory) continue;
    pass_.reset();  // a trace keeps the size of the largest it has seen
    return_freed_memory();
  }
  return judge(result);
}

void FlatLearner::observe(double scale) {
  assert(statistics_ && gradient_);
  statistics_->observe(gradient_->values(), scale);
}

curriculum::Comparison FlatLearner::compare() {
  assert(statistics_);
  return statistics_->compare();
}

void FlatLearner::update(double learning_rate, double gradient_scale) {
  assert(gradient_);
  optimizer_.set_learning_rate(learning_rate);
  optimizer_.update(values_, gradient_->values(), gradient_scale);
  if (!config_.keeps_memory) gradient_.reset();
}

std::vector<io::StoredTensor> FlatLearner::tensors() const {
  std::vector<io::StoredTensor> tensors;
  for (const auto& slot : slots_)
    tensors.push_back(
        {slot.name, DType::f32, slot.shape,
         std::as_bytes(values_.subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size)))});
  return tensors;
}

LearnerState FlatLearner::save(const Path& folder, const std::string& description) const {
  save_model(folder / "model", description);
  const SavedVector moments[] = {{kFirstMoment, first_moment_.values()},
                                 {kSecondMoment, second_moment_.values()}};
  save_vectors(folder / "optimizer.safetensors", moments, tensors_);
  LearnerState state{.updates = optimizer_.updates()};
  if (statistics_) {
    // By role, as the statistics tell it: closing an iteration exchanges the two.
    const SavedVector means[] = {{kRunningMean, statistics_->running_mean()},
                                 {kPreviousMean, statistics_->previous_mean()}};
    save_vectors(folder / "trigger.safetensors", means, tensors_);
    state.statistics = statistics_->state();
  }
  return state;
}

void FlatLearner::restore(const Path& folder, const LearnerState& state) {
  load_model(folder / "model");
  const RestoredVector moments[] = {{kFirstMoment, first_moment_.values()},
                                    {kSecondMoment, second_moment_.values()}};
  load_vectors(folder / "optimizer.safetensors", moments, tensors_);
  optimizer_ = optim::AdamW(config_.adamw, first_moment_.values(), second_moment_.values(), state.updates);
  if (!statistics_ || !state.statistics) return;
  const RestoredVector means[] = {{kRunningMean, statistics_->running_mean()},
                                  {kPreviousMean, statistics_->previous_mean()}};
  load_vectors(folder / "trigger.safetensors", means, tensors_);
  statistics_->restore(*state.statistics);
}

uint64_t FlatLearner::saved_bytes() const {
  const uint64_t vectors = 3 + (statistics_ ? 2 : 0);  // weights, two moments, two means
  return vectors * sizeof(float) * values_.size();
}

FullLearner::FullLearner(model::Parameters parameters, LearnerConfig config, io::SaveModelOptions model_files)
    : FlatLearner(parameters.weights(), parameters.values(), parameters.slots(), std::move(config)),
      parameters_(std::move(parameters)),
      model_files_(std::move(model_files)) {}

void FullLearner::save_model(const Path& path, const std::string& description) const {
  io::SaveModelOptions options = model_files_;
  options.description = description;
  io::save_model_directory(path, options, tensors());
}

void FullLearner::load_model(const Path& path) {
  const io::ModelDirectory saved(path);
  io::require_same_model(saved.config(), saved.path().string(), parameters_.config());
  const auto loaded = model::Parameters::load(saved);
  std::copy(loaded.values().begin(), loaded.values().end(), parameters_.values().begin());
}

}  // namespace ropd::train
