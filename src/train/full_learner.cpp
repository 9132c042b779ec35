#include "train/full_learner.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/memory_info.h"
#include "train/state_tensors.h"

namespace ropd::train {
namespace {

// The vectors of a checkpoint: one list each for saving and loading.
constexpr const char *kMomentsFile = "optimizer.safetensors", *kMeansFile = "trigger.safetensors",
                     *kMasterFile = "master.safetensors", *kMaster = "master";
constexpr const char* kMoments[] = {"exp_avg", "exp_avg_sq"};
constexpr const char* kMeans[] = {"running_mean", "previous_mean"};

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
                         std::vector<model::ParameterSlot> slots, LearnerConfig config, comm::World& world)
    : config_(std::move(config)),
      slots_(std::move(slots)),
      tensors_(tensor_ranges(slots_)),
      slices_(world, values.size()),
      values_(values),
      weights_(std::move(weights)),
      first_moment_(vector_of(slices_.own().size(), config_.optimizer_folder)),
      second_moment_(vector_of(slices_.own().size(), config_.optimizer_folder)),
      optimizer_(config_.adamw, first_moment_.values(), second_moment_.values()) {
  weights_.execution.keeps_memory = config_.keeps_memory;
  if (!config_.has_statistics) return;
  running_mean_ = vector_of(slices_.own().size(), config_.statistics_folder);
  previous_mean_ = vector_of(slices_.own().size(), config_.statistics_folder);
  statistics_.emplace(running_mean_.values(), previous_mean_.values(),
                      [this](const std::vector<double>& sums) { return slices_.total(sums); });
}

model::Gradients& FlatLearner::provide_gradient() {
  if (!gradient_) gradient_.emplace(slots_, weights_.config.num_layers);
  return *gradient_;
}

std::span<const float> FlatLearner::summed_gradient() const {
  if (!is_alone()) return own_gradient_;
  assert(gradient_);
  return gradient_->values();
}

void FlatLearner::release_gradient() {
  gradient_.reset();
  own_gradient_ = {};
}

std::optional<optim::NonFinite> FlatLearner::find_non_finite() const {
  ByteWriter own;
  if (const auto found = optim::find_non_finite(summed_gradient(), {}))
    own.put(uint64_t{found->index + slices_.own().begin}).put(found->value).put(uint64_t{found->count});
  std::optional<optim::NonFinite> first;
  for (const auto& part : comm::gather(slices_.world(), own.bytes(), comm::Tag::sums)) {
    if (part.empty()) continue;
    ByteReader reader(part);
    optim::NonFinite found;
    found.index = reader.get<uint64_t>();
    reader.get(found.value);
    const auto count = reader.get<uint64_t>();
    if (!first) first = found;
    first->count += count;
  }
  if (first) optim::name_place(*first, tensors_);
  return first;
}

// The norm, and whether the gradient may be used.
MinibatchGradient FlatLearner::judge(MinibatchGradient result) {
  result.norm = std::sqrt(slices_.total(optim::squares_by_block(summed_gradient())));
  if (std::isfinite(result.norm) && std::isfinite(slices_.leaders(result.sums.weighted_loss))) return result;
  const auto found = find_non_finite();
  result.not_finite = found ? optim::describe(*found, values_.size()) : "the loss is not finite";
  if (!config_.keeps_memory) release_gradient();
  return result;
}

MinibatchGradient FlatLearner::gradient(std::span<const distill::Shard> minibatch,
                                        const distill::GradientConfig& config, distill::Scorer& scorer) {
  distill::GradientConfig own = config;
  own.precision = config_.precision;
  own.trace_budget_bytes = config_.activation_bytes;
  const auto teacher = [&](std::span<const distill::TrainingItem> items) {
    return scorer.teacher_rows(items);
  };
  MinibatchGradient result;
  for (const distill::Shard& shard : minibatch) result.microbatches += static_cast<uint32_t>(shard.size());
  result.sums =
      is_alone() ? distill::minibatch_gradient(provide_gradient(), memory_, weights_, minibatch, own, teacher)
                 : spread_gradient(minibatch, own, teacher);
  return judge(result);
}

// In rounds of one shard a rank, so that what owners add comes in the order of shards.
distill::GradientSums FlatLearner::spread_gradient(std::span<const distill::Shard> minibatch,
                                                   const distill::GradientConfig& config,
                                                   const distill::TeacherRowsSource& teacher) {
  const size_t ranks = static_cast<size_t>(slices_.world().size()),
               rounds = (minibatch.size() + ranks - 1) / ranks;
  own_gradient_.resize(slices_.own().size());
  const auto fold = [&](size_t round, std::span<const float> gradient) {
    const size_t active = std::min(ranks, minibatch.size() - round * ranks);
    slices_.fold(own_gradient_, gradient, static_cast<int>(active), round == 0);
  };
  std::vector<size_t> own;
  for (size_t s = static_cast<size_t>(slices_.world().rank()); s < minibatch.size(); s += ranks)
    own.push_back(s);
  std::vector<distill::GradientSums> sums;  // of own shards
  distill::shard_gradients(
      memory_, [&] { return model::Gradients(slots_, weights_.config.num_layers); }, weights_, minibatch, own,
      config, teacher,
      [&](size_t shard, std::span<const float> gradient, const distill::GradientSums& of_shard) {
        fold(shard / ranks, gradient);
        sums.push_back(of_shard);
      });
  for (size_t round = own.size(); round < rounds; ++round) fold(round, {});

  const auto bytes = std::as_bytes(std::span(sums));
  const auto parts = comm::gather(slices_.world(), bytes, comm::Tag::sums);
  distill::GradientSums total;
  for (size_t s = 0; !parts.empty() && s < minibatch.size(); ++s) {
    distill::GradientSums of_shard;
    static_assert(std::is_trivially_copyable_v<distill::GradientSums>);
    assert((s / ranks + 1) * sizeof of_shard <= parts[s % ranks].size());
    std::memcpy(&of_shard, parts[s % ranks].data() + s / ranks * sizeof of_shard, sizeof of_shard);
    total += of_shard;
  }
  return total;
}

// One chain from zero over all microbatches.
MinibatchGradient FlatLearner::gradient(std::span<const distill::SupervisedMicrobatch> minibatch) {
  assert(is_alone());
  provide_gradient().clear();
  MinibatchGradient result{.microbatches = static_cast<uint32_t>(minibatch.size())};
  for (const distill::SupervisedMicrobatch& microbatch : minibatch) {
    if (!pass_) pass_.emplace(config_.precision, config_.activation_bytes);
    result.sums.weighted_loss +=
        distill::accumulate_supervised(*gradient_, *pass_, weights_, microbatch, config_.precision);
  }
  if (!config_.keeps_memory) {
    pass_.reset();
    return_freed_memory();
  }
  return judge(result);
}

void FlatLearner::observe(double scale) {
  assert(statistics_);
  statistics_->observe(summed_gradient(), scale);
}

curriculum::Comparison FlatLearner::compare() {
  assert(statistics_);
  return statistics_->compare();
}

void FlatLearner::update(double learning_rate, double gradient_scale) {
  optimizer_.set_learning_rate(learning_rate);
  const comm::Slice own = slices_.own();
  optimizer_.update(values_.subspan(own.begin, own.size()), summed_gradient(), gradient_scale);
  slices_.share(values_);
  if (!config_.keeps_memory) release_gradient();
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
  if (slices_.leads()) {
    save_model(folder / "model", description);
    if (config_.stored != DType::f32) {
      const SavedVector master[] = {{kMaster, values_}};
      save_vectors(folder / kMasterFile, master, tensors_);
    }
  }
  const auto save = [&](const char* file, std::span<const char* const> names,
                        std::span<const std::span<const float>> vectors) {
    slices_.save(vectors, [&](std::span<const SavedVector::Read> reads) {
      std::vector<SavedVector> saved;
      for (size_t i = 0; i < reads.size(); ++i) saved.emplace_back(names[i], reads[i]);
      save_vectors(folder / file, saved, tensors_);
    });
  };
  save(kMomentsFile, kMoments,
       std::vector<std::span<const float>>{first_moment_.values(), second_moment_.values()});
  LearnerState state{.updates = optimizer_.updates()};
  if (statistics_) {
    // By role, as the statistics tell it: closing an iteration exchanges the two.
    save(kMeansFile, kMeans,
         std::vector<std::span<const float>>{statistics_->running_mean(), statistics_->previous_mean()});
    state.statistics = statistics_->state();
  }
  return state;
}

// From the master copy; without one, model/ is it.
void FlatLearner::restore(const Path& folder, const LearnerState& state) {
  if (slices_.leads()) {
    const bool is_exact = load_model(folder / "model");
    if (std::filesystem::exists(folder / kMasterFile)) {
      const RestoredVector master[] = {{kMaster, values_}};
      load_vectors(folder / kMasterFile, master, tensors_);
    } else if (!is_exact) {
      fail(folder.string(), ": model/ is rounded (not F32) and there is no ", kMasterFile,
           "; training goes on from exact f32 values only");
    }
  }
  slices_.copy_from_leader(values_);
  const auto load = [&](const char* file, std::span<const char* const> names,
                        std::span<const std::span<float>> vectors) {
    slices_.load(vectors, [&](std::span<const RestoredVector::Write> writes) {
      std::vector<RestoredVector> restored;
      for (size_t i = 0; i < writes.size(); ++i) restored.emplace_back(names[i], writes[i]);
      load_vectors(folder / file, restored, tensors_);
    });
  };
  load(kMomentsFile, kMoments,
       std::vector<std::span<float>>{first_moment_.values(), second_moment_.values()});
  optimizer_ = optim::AdamW(config_.adamw, first_moment_.values(), second_moment_.values(), state.updates);
  if (!statistics_ || !state.statistics) return;
  load(kMeansFile, kMeans,
       std::vector<std::span<float>>{statistics_->running_mean(), statistics_->previous_mean()});
  statistics_->restore(*state.statistics);
}

uint64_t FlatLearner::saved_bytes() const {
  const uint64_t vectors = 3 + (statistics_ ? 2 : 0);  // weights, two moments, two means
  const uint64_t rounded = config_.stored == DType::f32 ? 0 : dtype_bytes(config_.stored);
  return (vectors * sizeof(float) + rounded) * values_.size();
}

FullLearner::FullLearner(model::Parameters parameters, LearnerConfig config, io::SaveModelOptions model_files,
                         comm::World& world)
    : FlatLearner(parameters.weights(), parameters.values(), parameters.slots(), std::move(config), world),
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
