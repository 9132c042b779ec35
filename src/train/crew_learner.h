// The learner that a trainer drives where the work is spread over ranks: whatever the leader is asked for, every
// rank's own learner does (train/full_learner.h), each with its shards of a minibatch.
#pragma once
#include "comm/crew.h"
#include "train/learner.h"

namespace ropd::train {

// On every rank, around a learner whose ranks call together; the others serve it through the crew.
class CrewLearner final : public Learner {
 public:
  // All must outlive it. `scorer` is asked for the teacher's rows of this rank's shards.
  CrewLearner(Learner& own, distill::Scorer& scorer, comm::Crew& crew);

  MinibatchGradient gradient(std::span<const distill::Shard> minibatch, const distill::GradientConfig& config,
                             distill::Scorer& scorer) override;
  // Refused: supervised fine-tuning is one process.
  MinibatchGradient gradient(std::span<const distill::SupervisedMicrobatch> minibatch) override;
  void observe(double scale) override;
  curriculum::Comparison compare() override;
  void update(double learning_rate, double gradient_scale) override;
  LearnerState save(const Path& folder, const std::string& description) const override;
  void restore(const Path& folder, const LearnerState& state) override;
  uint64_t saved_bytes() const override { return own_.saved_bytes(); }

 private:
  Learner& own_;
  distill::Scorer& scorer_;
  comm::Crew& crew_;
  const size_t duty_;
  uint64_t updates_ = 0;

  void serve(ByteReader& call);
  std::string activity(const char* what) const;
};

}  // namespace ropd::train
