#include "train/samples.h"

#include <algorithm>

#include "distill/sampled_tokens.h"
#include "grading/grader.h"
#include "io/sample_file.h"

namespace ropd::train {
namespace {

const Query* find_query(const QuerySet& queries, const std::string& id) {
  const auto found =
      std::ranges::find_if(queries.queries, [&](const TrainingQuery& entry) { return entry.query.id == id; });
  return found == queries.queries.end() ? nullptr : &found->query;
}

}  // namespace

std::vector<size_t> choose_samples(size_t size, size_t count) {
  std::vector<size_t> chosen;
  count = std::min(size, count);
  for (size_t i = 0; i < count; ++i) chosen.push_back(i * size / count);
  return chosen;
}

std::vector<ResponseSample> make_samples(uint64_t iteration, std::span<const Rollout> rollouts,
                                         std::span<const Scores> scores, const QuerySet& queries,
                                         const text::Tokenizer& tokenizer, size_t count) {
  std::vector<ResponseSample> samples;
  for (const size_t i : choose_samples(rollouts.size(), count)) {
    const Rollout& rollout = rollouts[i];
    const Query* query = find_query(queries, rollout.query_id);
    ResponseSample sample{
        .iteration = iteration,
        .query_id = rollout.query_id,
        .sample = rollout.sample,
        .question = query && !query->messages.empty() ? query->messages.back().content : "",
        .answer = query ? query->answer : rollout.answer,
        .finish = rollout.finish,
        .num_tokens = rollout.response_ids.size(),
        .tokens = distill::sampled_tokens(rollout, scores[i], tokenizer, io::kMaxSampleTokens,
                                          io::kMaxSampleTokensWithChoices)};
    if (!sample.answer.empty())
      sample.correct = grading::grade(tokenizer.decode(rollout.response_ids), sample.answer).correct;
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace ropd::train
