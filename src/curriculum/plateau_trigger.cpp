#include "curriculum/plateau_trigger.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace ropd::curriculum {

PlateauTrigger::PlateauTrigger(const RowSettings& row, const PlateauSettings& settings)
    : RowTrigger(row), settings_(settings) {
  if (settings.window == 0) fail("trigger.window must be > 0, got 0");
  if (!(settings.tolerance >= 0)) fail("trigger.tolerance must be >= 0, got ", settings.tolerance);
}

std::optional<bool> PlateauTrigger::judge(const Evidence& evidence) {
  const double value = settings_.quantity == PlateauOf::kl ? evidence.kl : evidence.length;
  if (!std::isfinite(value)) {
    values_.clear();
    return std::nullopt;
  }
  values_.push_back(value);
  if (values_.size() > 2 * settings_.window) values_.erase(values_.begin());
  if (values_.size() < 2 * settings_.window) return std::nullopt;
  const auto middle = values_.begin() + static_cast<std::ptrdiff_t>(settings_.window);
  const double window = static_cast<double>(settings_.window);
  const double before = std::accumulate(values_.begin(), middle, 0.0) / window;
  const double now = std::accumulate(middle, values_.end(), 0.0) / window;
  return std::abs(now - before) <= settings_.tolerance * std::abs(before);
}

Json PlateauTrigger::save() const {
  Json saved = RowTrigger::save();
  saved["values"] = values_;
  return saved;
}

void PlateauTrigger::restore(const Json& saved) {
  RowTrigger::restore(saved);
  const auto values = saved.find("values");
  const auto is_number = [](const Json& value) { return value.is_number(); };
  if (values == saved.end() || !values->is_array() || values->size() > 2 * settings_.window ||
      !std::all_of(values->begin(), values->end(), is_number))
    fail("saved trigger ", saved.dump(), ": expected \"values\", up to ", 2 * settings_.window,
         " numbers (a run with another trigger?)");
  values_ = values->get<std::vector<double>>();
}

}  // namespace ropd::curriculum
