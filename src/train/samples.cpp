#include "train/samples.h"

#include <algorithm>

#include "eval/samples.h"

namespace ropd::train {
namespace {

const Query* find_query(const QuerySet& queries, const std::string& id) {
  const auto found =
      std::ranges::find_if(queries.queries, [&](const TrainingQuery& entry) { return entry.query.id == id; });
  return found == queries.queries.end() ? nullptr : &found->query;
}

}  // namespace

std::vector<ResponseSample> make_samples(uint64_t iteration, std::span<const Rollout> rollouts,
                                         std::span<const Scores> scores, const QuerySet& queries,
                                         const text::Tokenizer& tokenizer, size_t count) {
  std::vector<ResponseSample> samples;
  for (const size_t i : eval::choose_samples(rollouts.size(), count)) {
    samples.push_back(
        eval::make_sample(rollouts[i], scores[i], find_query(queries, rollouts[i].query_id), tokenizer));
    samples.back().iteration = iteration;
  }
  return samples;
}

}  // namespace ropd::train
