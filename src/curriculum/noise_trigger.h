// The trigger of R-OPD (method.md section 5): the mean gradient has moved no farther since the preceding
// iteration than the noise of both means explains,
//   D_k <= V_k          with V = 0 only D = 0
// in `persistence` comparisons in a row, the last at iteration k: tau = k. An iteration without a comparison
// ends the row.
#pragma once
#include "curriculum/trigger.h"

namespace ropd::curriculum {

class NoiseTrigger final : public Trigger {
 public:
  explicit NoiseTrigger(uint64_t persistence);
  bool needs_gradients() const override { return true; }
  // One more when nothing was observed before its stage; a lower bound is enough for the check of a
  // curriculum.
  uint64_t earliest() const override { return persistence_; }
  Verdict observe(const Evidence& evidence) override;
  Json save() const override;
  void restore(const Json& saved) override;

 private:
  const uint64_t persistence_;
  uint64_t consecutive_ = 0;
};

}  // namespace ropd::curriculum
