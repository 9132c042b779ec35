// Learners over flat f32 parameters: their gradient, AdamW's moments and, where a trigger watches, the gradients'
// statistics. FullLearner trains every parameter of a model; adapter_learner.h those of an adapter.
//
// Over several ranks every rank has all parameters and computes the shards s of a minibatch with s mod ranks =
// its own; summed gradient, moments and statistics are divided (train/rank_slices.h): slices go to their owner,
// who adds them in the order of shards, updates its slice of the parameters and gives it to everybody. All bits
// are those of one rank. All ranks call together (train/crew_learner.h); files are rank 0's.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "io/save_model.h"
#include "model/training_pass.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "tensor/float_storage.h"
#include "train/learner.h"
#include "train/rank_slices.h"

namespace ropd::train {

struct LearnerConfig {
  optim::AdamWSettings adamw;
  kernels::Precision precision = kernels::Precision::f32;
  size_t activation_bytes = model::kTraceBudgetBytes;  // kept between forward and backward
  std::optional<Path> optimizer_folder = {};           // moments in scratch files there; else in memory
  bool has_statistics = false;                         // of the gradients
  std::optional<Path> statistics_folder = {};          // their vectors in scratch files there; else in memory
  bool keeps_memory = true;                            // gradient and activations stay between steps
  DType stored = DType::f32;  // of model/ in full training; rounded, its exact master copy lies beside it
};

// What all of them share. Whoever derives owns the parameters and knows their files.
class FlatLearner : public Learner {
 public:
  FlatLearner(const FlatLearner&) = delete;  // the pass refers to weights_
  FlatLearner& operator=(const FlatLearner&) = delete;

  // Of a minibatch's shards this rank reads its own only; the result is whole on rank 0.
  MinibatchGradient gradient(std::span<const distill::Shard> minibatch, const distill::GradientConfig& config,
                             distill::Scorer& scorer) final;
  // One rank only.
  MinibatchGradient gradient(std::span<const distill::SupervisedMicrobatch> minibatch) final;
  void observe(double scale) final;
  curriculum::Comparison compare() final;
  void update(double learning_rate, double gradient_scale) final;
  LearnerState save(const Path& folder, const std::string& description) const final;
  void restore(const Path& folder, const LearnerState& state) final;
  uint64_t saved_bytes() const final;

  // model/ alone: into a new folder; from one, failing when it is another model's. Whether its values are
  // stored exactly.
  virtual void save_model(const Path& path, const std::string& description) const = 0;
  [[nodiscard]] virtual bool load_model(const Path& path) = 0;
  // The model in this process, for whoever samples, scores or evaluates here. Views follow updates.
  model::Weights weights() const { return weights_; }
  std::span<float> values() { return values_; }

 protected:
  // `weights` views `values`, flat in the layout of `slots`, which must outlive the learner.
  FlatLearner(model::Weights weights, std::span<float> values, std::vector<model::ParameterSlot> slots,
              LearnerConfig config, comm::World& world);
  // The values as tensors to save.
  std::vector<io::StoredTensor> tensors() const;
  const LearnerConfig& config() const { return config_; }

 private:
  // constant after construction
  const LearnerConfig config_;
  const std::vector<model::ParameterSlot> slots_;
  std::vector<optim::TensorRange> tensors_;
  const RankSlices slices_;
  // what training changes
  const std::span<float> values_;
  model::Weights weights_;
  FloatStorage first_moment_, second_moment_;  // [own slice], as the means
  optim::AdamW optimizer_;
  FloatStorage running_mean_, previous_mean_;  // empty without statistics
  std::optional<curriculum::GradientStatistics> statistics_;
  // memory of a step
  std::optional<model::Gradients> gradient_;  // of one rank
  Buffer own_gradient_;                       // [own slice] of several
  distill::GradientMemory memory_;
  std::optional<model::TrainingPass> pass_;  // of supervised fine-tuning

  bool is_alone() const { return slices_.world().size() == 1; }
  model::Gradients& provide_gradient();
  std::span<const float> summed_gradient() const;  // [own slice]
  void release_gradient();
  distill::GradientSums spread_gradient(std::span<const distill::Shard> minibatch,
                                        const distill::GradientConfig& config,
                                        const distill::TeacherRowsSource& teacher);
  MinibatchGradient judge(MinibatchGradient result);
  std::optional<optim::NonFinite> find_non_finite() const;
};

class FullLearner final : public FlatLearner {
 public:
  // model_files: of save(); the description is set there.
  FullLearner(model::Parameters parameters, LearnerConfig config, io::SaveModelOptions model_files = {},
              comm::World& world = comm::solo_crew().world());
  void save_model(const Path& path, const std::string& description) const override;
  bool load_model(const Path& path) override;
  model::Parameters& parameters() { return parameters_; }

 private:
  model::Parameters parameters_;
  const io::SaveModelOptions model_files_;
};

}  // namespace ropd::train
