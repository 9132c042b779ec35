// The trigger of R-OPD (method.md section 5): the mean gradient has moved no farther since the preceding
// iteration than the noise of both means explains,
//   D_k <= c V_k        with V = 0 only D = 0; c = 1 in the paper
// in so many comparisons in a row, the last at iteration k: tau = k. An iteration without a comparison ends
// the row.
#pragma once
#include "curriculum/row_trigger.h"

namespace ropd::curriculum {

class NoiseTrigger final : public RowTrigger {
 public:
  explicit NoiseTrigger(const RowSettings& row, double threshold = 1);
  bool needs_gradients() const override { return true; }

 private:
  const double threshold_;  // c
  std::optional<bool> judge(const Evidence& evidence) override;
};

}  // namespace ropd::curriculum
