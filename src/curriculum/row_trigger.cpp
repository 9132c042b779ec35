#include "curriculum/row_trigger.h"

#include <algorithm>

#include "base/error.h"

namespace ropd::curriculum {

RowTrigger::RowTrigger(const RowSettings& settings) : settings_(settings) {
  if (settings.persistence == 0) fail("trigger.persistence must be > 0, got 0");
}

// A lower bound is enough for the check of a curriculum: a first comparison may need an iteration more.
uint64_t RowTrigger::earliest_end(uint64_t before) const {
  return std::max(before + settings_.persistence, settings_.earliest);
}

Verdict RowTrigger::observe(const Evidence& evidence) {
  Verdict verdict{.qualifies = judge(evidence)};
  consecutive_ = evidence.counts && verdict.qualifies.value_or(false) ? consecutive_ + 1 : 0;
  verdict.consecutive = consecutive_;
  verdict.is_set = consecutive_ >= settings_.persistence && evidence.iteration >= settings_.earliest;
  return verdict;
}

Json RowTrigger::save() const { return {{"consecutive", consecutive_}}; }

void RowTrigger::restore(const Json& saved) {
  if (!saved.is_object() || !saved.contains("consecutive") || !saved["consecutive"].is_number_unsigned())
    fail("saved trigger ", saved.dump(), ": expected {\"consecutive\": n} (a run with another trigger?)");
  consecutive_ = saved["consecutive"];
}

}  // namespace ropd::curriculum
