#include "report/methods.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace ropd::report {
namespace {

// Equal for evaluations that saw the same questions.
std::string questions_key(const stats::EvaluationSummary& summary) {
  std::string key;
  for (const auto& benchmark : summary.benchmarks)
    key += benchmark.name + '\n' + benchmark.questions_sha256 + '\n';
  return key;
}

// A run may hold several final evaluations of the same questions (other temperatures, another sampling seed): then
// each name is a set of its own. Otherwise names do not matter.
std::set<std::string> keys_with_names(std::span<const RunData> runs) {
  std::set<std::string> keys;
  for (const RunData& run : runs) {
    std::map<std::string, int> count;
    for (const EvaluationData& evaluation : run.evaluations)
      if (!evaluation.step && ++count[questions_key(evaluation.summary)] > 1)
        keys.insert(questions_key(evaluation.summary));
  }
  return keys;
}

// The index of the set with this key, added when it is new.
size_t set_of(Comparison& comparison, std::vector<std::string>& keys, const std::string& key,
              const EvaluationData& evaluation, bool is_named) {
  const auto found = std::find(keys.begin(), keys.end(), key);
  if (found != keys.end()) return static_cast<size_t>(found - keys.begin());
  keys.push_back(key);
  ResultSet& set = comparison.results.emplace_back();
  set.name = evaluation.summary.suite + (is_named ? ", " + evaluation.name : "");
  for (const auto& benchmark : evaluation.summary.benchmarks) set.benchmarks.push_back(benchmark.name);
  set.methods.resize(comparison.methods.size());
  return keys.size() - 1;
}

void add_results(Comparison& comparison, std::span<const RunData> runs) {
  const std::set<std::string> named = keys_with_names(runs);
  std::vector<std::string> keys;
  for (size_t m = 0; m < comparison.methods.size(); ++m)
    for (const RunData* run : comparison.methods[m].runs) {
      // A final evaluation goes before those made on the way; of these the last one counts.
      std::map<size_t, const stats::EvaluationSummary*> shown;
      for (const bool is_final : {false, true})
        for (const EvaluationData& evaluation : run->evaluations) {
          if (!evaluation.step.has_value() != is_final) continue;
          const std::string questions = questions_key(evaluation.summary);
          const bool is_named = is_final && named.contains(questions);
          const size_t index =
              set_of(comparison, keys, questions + (is_named ? evaluation.name : ""), evaluation, is_named);
          ResultSet& set = comparison.results[index];
          shown[index] = &evaluation.summary;
          if (!is_final) set.methods[m].history.push_back(&evaluation);
          for (const uint32_t budget : evaluation.summary.budgets)
            if (std::find(set.budgets.begin(), set.budgets.end(), budget) == set.budgets.end())
              set.budgets.push_back(budget);
        }
      for (const auto& [index, summary] : shown) {
        comparison.results[index].methods[m].runs.push_back(summary);
        comparison.results[index].methods[m].orders.push_back(run->order());
      }
    }
  for (ResultSet& set : comparison.results) std::sort(set.budgets.begin(), set.budgets.end());
}

}  // namespace

Spread spread(std::span<const double> values) {
  std::vector<double> finite;
  for (const double value : values)
    if (std::isfinite(value)) finite.push_back(value);
  if (finite.empty()) return {.mean = NAN, .deviation = NAN, .count = 0};
  return stats::mean_and_deviation(finite);
}

Spread MethodResult::at(const stats::Measure& measure, int64_t budget,
                        std::optional<size_t> benchmark) const {
  std::vector<double> values;
  for (const stats::EvaluationSummary* run : runs) {
    const auto found = std::find(run->budgets.begin(), run->budgets.end(), budget);
    if (found == run->budgets.end()) continue;
    const auto index = static_cast<size_t>(found - run->budgets.begin());
    double sum = 0;
    size_t count = 0;
    for (size_t b = 0; b < run->benchmarks.size(); ++b) {
      if (benchmark && *benchmark != b) continue;
      double mean = 0;
      const auto& questions = run->benchmarks[b].questions[index];
      for (const auto& question : questions) mean += stats::value_of(measure, question);
      sum += mean / static_cast<double>(questions.size());
      ++count;
    }
    values.push_back(sum / static_cast<double>(count));
  }
  return spread(values);
}

Comparison compare_methods(std::span<const RunData> runs) {
  Comparison comparison;
  for (const RunData& run : runs) {
    auto& methods = comparison.methods;
    auto found =
        std::find_if(methods.begin(), methods.end(), [&](const Method& m) { return m.label == run.label; });
    if (found == methods.end()) found = methods.insert(methods.end(), Method{.label = run.label});
    found->runs.push_back(&run);
  }
  // Trained methods take the strong styles 0..5, references the two quiet ones.
  int next = 0, next_reference = 0;
  for (Method& method : comparison.methods) {
    method.is_reference = std::none_of(method.runs.begin(), method.runs.end(),
                                       [](const RunData* run) { return run->is_trained(); });
    method.style = method.is_reference ? 6 + next_reference++ % 2 : next++ % 6;
  }
  add_results(comparison, runs);
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
