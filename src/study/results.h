// What a study's folder holds of its results, read as tables and comparisons need it: values a question and
// run of evaluations, values a response and run of diagnoses. Reads only what is done.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "stats/bootstrap.h"
#include "stats/evaluation.h"
#include "study/plan.h"

namespace ropd::study {

// One student on the prefixes of one source, of one run of the repetitions.
struct DiagnosisCell {
  double kl = 0, less_likely = 0;
  std::vector<std::vector<double>> position_kl;             // [responses][positions]
  std::vector<std::optional<double>> response_less_likely;  // [responses]
  std::vector<double> norms;                                // [minibatches] of gradients; empty = no probes
  std::vector<std::vector<double>> coordinates;             // [minibatches][kept]
  std::vector<std::pair<double, double>> cumulative;        // change of log-likelihood, share at or below
};

// Fails when the file is no diagnosis or was changed.
[[nodiscard]] DiagnosisCell read_diagnosis(const Path& path);

// Not thread-safe: files are read when first asked for and kept.
class Results {
 public:
  Results(const StudyFile& file, const std::vector<Run>& runs, const Plan& plan, const Store& store);

  const StudyConfig& study() const { return study_; }
  const std::vector<Run>& runs() const { return runs_; }
  const Plan& plan() const { return plan_; }
  const Store& store() const { return store_; }
  const std::vector<Row>& rows() const { return rows_; }

  bool is_done(const PlannedEvaluation& planned) const;
  std::string name_of(const PlannedEvaluation& planned) const;
  const stats::EvaluationSummary& summary(const PlannedEvaluation& planned) const;

  // Evaluation e of these runs that are done, behind an iteration; without one, behind the last that is
  // evaluated.
  std::vector<const PlannedEvaluation*> done_of(size_t e, const std::vector<size_t>& runs,
                                                std::optional<uint64_t> iteration) const;
  // A measure a question, in its unit (percent, tokens), a run each; nothing when one is missing. The budget
  // is the largest when none is given.
  std::optional<std::vector<stats::RunValues>> values(const Row& row, size_t e, const stats::Measure& measure,
                                                      std::optional<uint64_t> budget) const;
  // Student i on source j of diagnosis d at every place (repetitions and other axes), as far as done.
  std::vector<const DiagnosisCell*> cells(size_t d, size_t student, size_t source) const;

 private:
  const StudyConfig& study_;
  const std::vector<Run>& runs_;
  const Plan& plan_;
  const Store& store_;
  const std::vector<Row> rows_;
  mutable std::map<std::string, stats::EvaluationSummary> summaries_;  // by id
  mutable std::map<std::string, DiagnosisCell> cells_;                 // by id
};

// The item of this name; names were checked when the file was read.
template <class Item>
size_t index_of(const std::vector<Item>& items, const std::string& name) {
  size_t i = 0;
  while (items[i].name != name) ++i;
  return i;
}

}  // namespace ropd::study
