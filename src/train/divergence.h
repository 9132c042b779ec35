// Tells when a run goes the wrong way. Distillation brings the student nearer to the teacher; where the
// measured KL on a source's rollouts exceeds what it was when that source was first used, by a factor, or the
// gradient vanishes, the weights are no longer worth much, although every number is finite.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "records/metrics.h"

namespace ropd::train {

class DivergenceWatch {
 public:
  explicit DivergenceWatch(double factor) : factor_(factor) {}  // 0 = off

  // In order, earlier sessions included. A sentence when this iteration looks diverged.
  std::optional<std::string> observe(const IterationRecord& record);

  bool has_diverged() const { return has_diverged_; }
  // Behind the last iteration before the first that looked diverged. A checkpoint of this step or an older
  // one is good; meaningful once has_diverged().
  uint64_t last_good_step() const { return last_good_step_; }

 private:
  double factor_;
  std::map<std::string, double> first_kl_;  // by source
  uint64_t last_good_step_ = 0;
  bool has_diverged_ = false;
};

}  // namespace ropd::train
