// A learner that trains every parameter of a model, in this process: flat f32 master parameters, their
// gradient, AdamW's moments and, where a trigger watches, the gradients' statistics.
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

namespace ropd::train {

struct FullLearnerConfig {
  optim::AdamWSettings adamw;
  kernels::Precision precision = kernels::Precision::f32;
  size_t activation_bytes = model::kTraceBudgetBytes;  // kept between forward and backward
  std::optional<Path> optimizer_folder = {};           // moments in scratch files there; else in memory
  bool has_statistics = false;                         // of the gradients
  std::optional<Path> statistics_folder = {};          // their vectors in scratch files there; else in memory
  bool keeps_memory = true;                            // gradient and activations stay between steps
  io::SaveModelOptions model_files = {};               // of save(); the description is set there
  DType stored = DType::f32;  // of model/; what is stored rounded has its exact master copy beside it
};

class FullLearner final : public Learner {
 public:
  FullLearner(model::Parameters parameters, FullLearnerConfig config);
  FullLearner(const FullLearner&) = delete;  // the pass refers to weights_
  FullLearner& operator=(const FullLearner&) = delete;

  MinibatchGradient gradient(std::span<const distill::Shard> minibatch, const distill::GradientConfig& config,
                             distill::Scorer& scorer) override;
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
  // what training changes
  model::Parameters parameters_;
  model::Weights weights_;  // views of parameters_
  FloatStorage first_moment_, second_moment_;
  optim::AdamW optimizer_;
  FloatStorage running_mean_, previous_mean_;  // empty without statistics
  std::optional<curriculum::GradientStatistics> statistics_;
  // memory of a step
  std::optional<model::Gradients> gradient_;
  distill::GradientMemory memory_;
  std::optional<model::TrainingPass> pass_;  // of supervised fine-tuning

  void restore_parameters(const Path& folder);
  model::Gradients& provide_gradient();
  MinibatchGradient judge(MinibatchGradient result);
};

}  // namespace ropd::train
