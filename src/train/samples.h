// The few responses of an iteration that people may read: chosen, graded, with the log-probabilities of both
// models (samples/iter-N.jsonl).
#pragma once
#include <span>
#include <vector>

#include "records/response_sample.h"
#include "records/scores.h"
#include "text/tokenizer.h"
#include "train/queries.h"

namespace ropd::train {

// Of a batch with its scores, in the batch's order. Queries give questions and answers; a rollout of another
// query has its own answer and no question.
std::vector<ResponseSample> make_samples(uint64_t iteration, std::span<const Rollout> rollouts,
                                         std::span<const Scores> scores, const QuerySet& queries,
                                         const text::Tokenizer& tokenizer, size_t count);

}  // namespace ropd::train
