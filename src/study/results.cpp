#include "study/results.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/sealed_json.h"

namespace ropd::study {

DiagnosisCell read_diagnosis(const Path& path) {
  const Json json = unsealed(parse_json(read_file(path), path.string()), path.string());
  DiagnosisCell cell;
  try {
    cell.kl = json.at("kl").get<double>();
    cell.less_likely = json.at("less_likely").get<double>();
    cell.position_kl = json.at("position_kl").get<std::vector<std::vector<double>>>();
    for (const Json& value : json.at("response_less_likely"))
      cell.response_less_likely.push_back(value.is_null() ? std::nullopt
                                                          : std::optional(value.get<double>()));
    cell.cumulative = json.at("cumulative").get<std::vector<std::pair<double, double>>>();
    if (json.contains("probe")) {
      cell.norms = json.at("probe").at("norms").get<std::vector<double>>();
      cell.coordinates = json.at("probe").at("coordinates").get<std::vector<std::vector<double>>>();
    }
  } catch (const Json::exception& error) {
    fail(path.string(), ": not a diagnosis: ", error.what());
  }
  return cell;
}

Results::Results(const StudyFile& file, const std::vector<Run>& runs, const Plan& plan, const Store& store)
    : study_(file.config), runs_(runs), plan_(plan), store_(store), rows_(rows_of(file.config, runs)) {}

bool Results::is_done(const PlannedEvaluation& planned) const {
  return std::filesystem::exists(store_.evaluation(planned.id) / "summary.json");
}

std::string Results::name_of(const PlannedEvaluation& planned) const {
  return planned.run ? runs_[*planned.run].label : planned.is_teacher ? "teacher" : "initial student";
}

const stats::EvaluationSummary& Results::summary(const PlannedEvaluation& planned) const {
  const auto found = summaries_.find(planned.id);
  if (found != summaries_.end()) return found->second;
  return summaries_.emplace(planned.id, stats::read_summary(store_.evaluation(planned.id))).first->second;
}

std::vector<const PlannedEvaluation*> Results::done_of(size_t e, const std::vector<size_t>& runs,
                                                       std::optional<uint64_t> iteration) const {
  std::vector<const PlannedEvaluation*> found;
  for (const size_t r : runs) {
    const PlannedEvaluation* last = nullptr;
    for (const PlannedEvaluation& planned : plan_.evaluations) {
      if (planned.evaluation != e || planned.run != r || !is_done(planned)) continue;
      if (iteration ? planned.iteration == *iteration : !last || planned.iteration > last->iteration)
        last = &planned;
    }
    if (last) found.push_back(last);
  }
  return found;
}

std::optional<std::vector<stats::RunValues>> Results::values(const Row& row, size_t e,
                                                             const stats::Measure& measure,
                                                             std::optional<uint64_t> budget) const {
  const auto done = done_of(e, row.runs, std::nullopt);
  if (done.size() != row.runs.size()) return std::nullopt;
  std::vector<stats::RunValues> runs;
  for (const PlannedEvaluation* planned : done) {
    const auto& evaluation = summary(*planned);
    runs.push_back(
        evaluation.values(measure, budget ? static_cast<uint32_t>(*budget) : evaluation.budgets.back()));
    for (auto& benchmark : runs.back())
      for (double& value : benchmark.values) value *= measure.scale();
  }
  return runs;
}

std::vector<const DiagnosisCell*> Results::cells(size_t d, size_t student, size_t source) const {
  std::vector<const DiagnosisCell*> found;
  for (const PlannedDiagnosis& planned : plan_.diagnoses) {
    if (planned.diagnosis != d || planned.source != source || planned.student != student) continue;
    const Path path = store_.diagnosis(planned.id);
    if (!std::filesystem::exists(path)) continue;
    auto cell = cells_.find(planned.id);
    if (cell == cells_.end()) cell = cells_.emplace(planned.id, read_diagnosis(path)).first;
    found.push_back(&cell->second);
  }
  return found;
}

}  // namespace ropd::study
