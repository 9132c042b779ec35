#include "report/methods.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ropd::report {
namespace {

const BudgetResult* result_at(const RunData& run, int64_t budget) {
  if (!run.evaluation) return nullptr;
  for (const BudgetResult& result : run.evaluation->budgets)
    if (result.budget == budget) return &result;
  return nullptr;
}

template <class Value>
Spread spread_over_runs(const Method& method, int64_t budget, Value value) {
  std::vector<double> values;
  for (const RunData* run : method.runs)
    if (const BudgetResult* result = result_at(*run, budget)) values.push_back(value(*result));
  return spread(values);
}

void summarize(Method& method, const std::vector<int64_t>& budgets) {
  for (const int64_t budget : budgets) {
    method.accuracy.push_back(
        spread_over_runs(method, budget, [](const BudgetResult& r) { return r.accuracy; }));
    method.lengths.push_back(
        spread_over_runs(method, budget, [](const BudgetResult& r) { return r.length; }));
    method.has_evaluation |= method.accuracy.back().count > 0;
  }
  if (budgets.empty()) return;
  method.length = method.lengths.back();
  method.at_cap = spread_over_runs(method, budgets.back(), [](const BudgetResult& r) { return r.at_cap; });
  for (size_t i = 0; i < method.categories.size(); ++i)
    method.categories[i] =
        spread_over_runs(method, budgets.back(), [i](const BudgetResult& r) { return r.categories[i]; }).mean;
}

}  // namespace

Spread spread(std::span<const double> values) {
  std::vector<double> finite;
  for (const double value : values)
    if (std::isfinite(value)) finite.push_back(value);
  if (finite.empty()) return {.mean = NAN, .deviation = NAN, .count = 0};
  return stats::mean_and_deviation(finite);
}

Comparison compare_methods(std::span<const RunData> runs) {
  Comparison comparison;
  for (const RunData& run : runs) {
    if (comparison.budgets.empty() && run.evaluation)
      for (const BudgetResult& result : run.evaluation->budgets) comparison.budgets.push_back(result.budget);
    auto& methods = comparison.methods;
    auto found =
        std::find_if(methods.begin(), methods.end(), [&](const Method& m) { return m.label == run.label; });
    if (found == methods.end()) found = methods.insert(methods.end(), Method{.label = run.label});
    found->runs.push_back(&run);
  }
  std::sort(comparison.budgets.begin(), comparison.budgets.end());
  // Trained methods take the strong styles 0..5, references the two quiet ones.
  int next = 0, next_reference = 0;
  for (Method& method : comparison.methods) {
    method.is_reference = std::none_of(method.runs.begin(), method.runs.end(),
                                       [](const RunData* run) { return run->is_trained(); });
    method.style = method.is_reference ? 6 + next_reference++ % 2 : next++ % 6;
    summarize(method, comparison.budgets);
  }
  return comparison;
}

Curve mean_curve(const Method& method, double (*value)(const IterationRecord&)) {
  std::map<uint64_t, std::vector<double>> by_iteration;
  for (const RunData* run : method.runs)
    for (const IterationRecord& record : run->iterations)
      by_iteration[record.iteration].push_back(value(record));
  Curve curve;
  for (const auto& [iteration, values] : by_iteration) {
    curve.iteration.push_back(static_cast<double>(iteration));
    curve.value.push_back(spread(values).mean);
  }
  return curve;
}

}  // namespace ropd::report
