// What a study found, as tables: every evaluation by method and budget, the paper's tables with its numbers
// beside ours, the trigger's D/V, and every comparison with the paper's number and a verdict in words. Tables
// of diagnoses are in diagnosis_tables.h. What is not done yet shows as "-" or "not measured".
#pragma once
#include <string>
#include <vector>

#include "stats/table.h"
#include "study/results.h"

namespace ropd::study {

// Mean over runs, and their deviation with several.
stats::Cell spread_cell(const std::vector<double>& values, int decimals);
// A number of the paper; "-" where it has none.
stats::Cell paper_cell(const std::vector<std::optional<double>>& paper, size_t column, int decimals);

std::vector<stats::Table> study_tables(const Results& results);

// The same numbers for programs: NAME.json.
std::string study_results_json(const Results& results);

}  // namespace ropd::study
