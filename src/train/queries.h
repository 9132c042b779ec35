// The queries of a run as prompts: read, filtered by length, chosen, ordered (method.md section 7).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "records/query.h"
#include "records/rollout.h"
#include "rollout/request.h"
#include "text/prompt_renderer.h"
#include "train/train_config.h"

namespace ropd::train {

struct TrainingQuery {
  Query query;
  std::shared_ptr<const std::vector<Token>> prompt;
};

struct QuerySet {
  std::vector<TrainingQuery> queries;  // in the order of the run
  size_t num_in_file = 0;
  size_t num_too_long = 0;
  std::string fingerprint;  // of ids, prompts and answers, in order
};

// Fails when nothing is left.
QuerySet load_queries(const TrainConfig& config, const text::PromptRenderer& renderer);

// The endless stream of (query, sample) that a run draws responses for: query r mod N, sample r / N. Every
// stretch of n * N requests holds each query n times.
rollout::Request request_at(const QuerySet& set, uint64_t position, const RandomStream& stream);

// `count` requests from `position` on. Grouped: the responses to one query stand together.
std::vector<rollout::Request> take_requests(const QuerySet& set, uint64_t position, uint64_t count,
                                            const RandomStream& stream, bool grouped);

}  // namespace ropd::train
