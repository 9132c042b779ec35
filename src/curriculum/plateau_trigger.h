// A trigger by a number of the iterations themselves, without gradients: the KL estimate or the mean response
// length has stopped moving. With x_k the number of iteration k and w the window,
//   now = mean(x_{k-w+1} .. x_k)    before = mean(x_{k-2w+1} .. x_{k-w})
//   |now - before| <= tolerance |before|
// qualifies. The first 2 w - 1 iterations say nothing, nor does one whose number is not finite: there the
// count begins anew.
#pragma once
#include <vector>

#include "curriculum/row_trigger.h"

namespace ropd::curriculum {

enum class PlateauOf { kl, length };

struct PlateauSettings {
  PlateauOf quantity = PlateauOf::kl;
  double tolerance = 0.05;
  uint64_t window = 1;
};

class PlateauTrigger final : public RowTrigger {
 public:
  PlateauTrigger(const RowSettings& row, const PlateauSettings& settings);
  bool needs_gradients() const override { return false; }
  Json save() const override;
  void restore(const Json& saved) override;

 private:
  const PlateauSettings settings_;
  std::vector<double> values_;  // the last 2 w at most, oldest first
  std::optional<bool> judge(const Evidence& evidence) override;
};

}  // namespace ropd::curriculum
