// Diagnoses of a study as tables, the paper's numbers beside them: KL on fixed prefixes, their likelihood, fit
// and shift, where a KL difference is concentrated, gradients. Several runs: mean and deviation.
#pragma once
#include <vector>

#include "stats/table.h"
#include "study/results.h"

namespace ropd::study {

std::vector<stats::Table> diagnosis_tables(const Results& results, size_t diagnosis);

}  // namespace ropd::study
