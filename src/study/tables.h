// What a study found: accuracy by method and budget, KL on fixed prefixes, and every comparison with the
// paper's number beside it and a verdict in words.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stats/bootstrap.h"
#include "study/plan.h"

namespace ropd::study {

enum class Verdict { same_and_significant, same_sign, opposite, not_measured };
// Whether a measured difference with its interval says what the paper says.
Verdict judge(const std::optional<stats::Interval>& measured, double paper);
std::string verdict_text(Verdict verdict);

// The runs that stand in one row: a method at one combination of the axes that do not repeat.
struct Row {
  std::string name;  // fixed, or grid@8@110
  std::vector<size_t> runs;
};
std::vector<Row> rows_of(const StudyConfig& config, const std::vector<Run>& runs);

// Everything that is done, as text; what is missing is named as such.
std::string study_tables(const StudyFile& file, const std::vector<Run>& runs, const Plan& plan,
                         const Store& store);

// The same numbers for programs: tables.json.
std::string study_results_json(const StudyFile& file, const std::vector<Run>& runs, const Plan& plan,
                               const Store& store);

}  // namespace ropd::study
