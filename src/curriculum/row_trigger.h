// What triggers have in common that ask for patience: so many qualifying iterations in a row, the last of them
// not before `earliest`. An iteration that says nothing ends the row; one that does not count is judged, but
// is in no row. What qualifies is for each trigger to say.
#pragma once
#include "curriculum/trigger.h"

namespace ropd::curriculum {

struct RowSettings {
  uint64_t persistence = 2;
  uint64_t earliest = 0;  // the first iteration that may be tau
};

class RowTrigger : public Trigger {
 public:
  uint64_t earliest_end(uint64_t before) const override;
  Verdict observe(const Evidence& evidence) final;
  Json save() const override;
  void restore(const Json& saved) override;

 protected:
  explicit RowTrigger(const RowSettings& settings);
  // Does this iteration speak for the switch? Nothing: it cannot be said.
  virtual std::optional<bool> judge(const Evidence& evidence) = 0;

 private:
  const RowSettings settings_;
  uint64_t consecutive_ = 0;
};

}  // namespace ropd::curriculum
