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
                     *kPreviousMean = "previous_mean", *kMaster = "master";
constexpr const char* kMasterFile = "master.safetensors";

std::vector<optim::TensorRange> tensor_ranges(std::span<const model::ParameterSlot> slots) {
  std::vector<optim::TensorRange> tensors;
  for (const auto& slot : slots)
    tensors.push_back({slot.name, static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size)});
  return tensors;
}

FloatStorage vector_of(size_t size, const std::optional<Path>& folder) {
  return folder ? FloatStorage(size, *folder) : FloatStorage(size);
}

}  // namespace

FlatLearner::FlatLearner(model::Weights weights, std::span<float> values,
                         std::vector<model::ParameterSlot> slots, LearnerConfig config)
    : config_(std::move(config)),
      slots_(std::move(slots)),
      tensors_(tensor_ranges(slots_)),
      values_(values),
      weights_(std::move(weights)),
      first_moment_(vector_of(values.size(), config_.optimizer_folder)),
      second_moment_(vector_of(values.size(), config_.optimizer_folder)),
      optimizer_(config_.adamw, first_moment_.values(), second_moment_.values()) {
  weights_.execution.keeps_memory = config_.keeps_memory;
  if (!config_.has_statistics) return;
  running_mean_ = vector_of(values_.size(), config_.statistics_folder);
  previous_mean_ = vector_of(values_.size(), config_.statistics_folder);
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
  if (config_.stored != DType::f32) {
    const SavedVector master[] = {{kMaster, values_}};
    save_vectors(folder / kMasterFile, master, tensors_);
  }
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

// From the master copy; without one, model/ is it.
void FlatLearner::restore(const Path& folder, const LearnerState& state) {
  const bool is_exact = load_model(folder / "model");
  if (std::filesystem::exists(folder / kMasterFile)) {
    const RestoredVector master[] = {{kMaster, values_}};
    load_vectors(folder / kMasterFile, master, tensors_);
  } else if (!is_exact) {
    fail(folder.string(), ": model/ is rounded (not F32) and there is no ", kMasterFile,
         "; training goes on from exact f32 values only");
  }
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
  const uint64_t rounded = config_.stored == DType::f32 ? 0 : dtype_bytes(config_.stored);
  return (vectors * sizeof(float) + rounded) * values_.size();
}

FullLearner::FullLearner(model::Parameters parameters, LearnerConfig config, io::SaveModelOptions model_files)
    : FlatLearner(parameters.weights(), parameters.values(), parameters.slots(), std::move(config)),
      parameters_(std::move(parameters)),
      model_files_(std::move(model_files)) {}

void FullLearner::save_model(const Path& path, const std::string& description) const {
  std::vector<io::TensorToSave> tensors;
  for (const auto& slot : parameters_.slots())
    tensors.push_back(io::tensor_to_save(
        slot.name, slot.shape,
        parameters_.values().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size)),
        config().stored));
  io::SaveModelOptions options = model_files_;
  options.description = description;
  io::save_model_directory(path, options, std::move(tensors));
}

bool FullLearner::load_model(const Path& path) {
  const io::ModelDirectory saved(path);
  io::require_same_model(saved.config(), saved.path().string(), parameters_.config());
  const auto loaded = model::Parameters::load(saved);
  std::copy(loaded.values().begin(), loaded.values().end(), parameters_.values().begin());
  return std::ranges::all_of(saved.tensors(),
                             [](const io::StoredTensor& tensor) { return tensor.dtype == DType::f32; });
}

}  // namespace ropd::train
