// A learner that trains every parameter of a model: flat f32 master parameters, their gradient, AdamW's moments
// and, where a trigger watches, the gradients' statistics.
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

struct FullLearnerConfig {
  optim::AdamWSettings adamw;
  kernels::Precision precision = kernels::Precision::f32;
  size_t activation_bytes = model::kTraceBudgetBytes;  // kept between forward and backward
  bool has_statistics = false;                         // of the gradients
  std::optional<Path> statistics_folder = {};          // their vectors in scratch files there; else in memory
  bool keeps_memory = true;                            // gradient and activations stay between steps
  io::SaveModelOptions model_files = {};               // of save(); the description is set there
};

class FullLearner final : public Learner {
 public:
  FullLearner(model::Parameters parameters, FullLearnerConfig config,
              comm::World& world = comm::solo_crew().world());
  FullLearner(const FullLearner&) = delete;  // the pass refers to weights_
  FullLearner& operator=(const FullLearner&) = delete;

  // Of a minibatch's shards this rank reads its own only; the result is whole on rank 0.
  MinibatchGradient gradient(std::span<const distill::Shard> minibatch, const distill::GradientConfig& config,
                             distill::Scorer& scorer) override;
  // One rank only.
  MinibatchGradient gradient(std::span<const distill::SupervisedMicrobatch> minibatch) override;
  void observe(double scale) override;
  curriculum::Comparison compare() override;
  void update(double learning_rate, double gradient_scale) override;
  LearnerState save(const Path& folder, const std::string& description) const override;
  void restore(const Path& folder, const LearnerState& state) override;
  uint64_t saved_bytes() const override;

  // model/ alone.
  void save_model(const Path& path, const std::string& description) const;
  // The parameters in this process, for whoever samples, scores or evaluates here. Views follow updates.
  model::Weights weights() const { return weights_; }
  model::Parameters& parameters() { return parameters_; }

 private:
  // constant after construction
  const FullLearnerConfig config_;
  std::vector<optim::TensorRange> tensors_;
  const RankSlices slices_;
  // what training changes
  model::Parameters parameters_;
  model::Weights weights_;                     // views of parameters_
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

}  // namespace ropd::train
