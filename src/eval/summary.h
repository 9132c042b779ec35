// summary.json of an evaluation and its tables: what `ropd eval` writes (docs/formats.md); stats/evaluation.h
// reads it. Shares and accuracies are fractions of one in files and percent in tables.
#pragma once
#include <vector>

#include "base/json.h"
#include "eval/outcomes.h"
#include "stats/table.h"

namespace ropd::eval {

// `about` (model, sampling, tokenizer, ...) is copied into the summary as it is.
Json summary_json(const Evaluation& evaluation, const Json& about);

// One table per budget, in percent and tokens: a row per benchmark and one for the mean.
std::vector<stats::Table> summary_tables(const Evaluation& evaluation);

}  // namespace ropd::eval
