#include "eval/samples.h"

#include <algorithm>
#include <memory>

#include "distill/sampled_tokens.h"
#include "eval/responses.h"
#include "grading/grader.h"
#include "io/rollout_file.h"
#include "io/sample_file.h"

namespace ropd::eval {
namespace {

constexpr uint32_t kNumCandidates = io::kMaxSampleCandidates;

}  // namespace

std::vector<size_t> choose_samples(size_t size, size_t count) {
  std::vector<size_t> chosen;
  count = std::min(size, count);
  for (size_t i = 0; i < count; ++i) chosen.push_back(i * size / count);
  return chosen;
}

ResponseSample make_sample(const Rollout& rollout, const Scores& scores, const Query* query,
                           const text::Tokenizer& tokenizer) {
  ResponseSample sample{.query_id = rollout.query_id,
                        .sample = rollout.sample,
                        .question = query && !query->messages.empty() ? query->messages.back().content : "",
                        .answer = query ? query->answer : rollout.answer,
                        .finish = rollout.finish,
                        .num_tokens = rollout.response_ids.size(),
                        .tokens = distill::sampled_tokens(rollout, scores, tokenizer, io::kMaxSampleTokens,
                                                          io::kMaxSampleTokensWithChoices)};
  if (!sample.answer.empty())
    sample.correct = grading::grade(tokenizer.decode(rollout.response_ids), sample.answer).correct;
  return sample;
}

ScoreResponses score_by(model::Weights student, std::optional<model::Weights> teacher,
                        distill::Precision precision,
                        std::optional<distill::TeacherTranslation> translation) {
  return [student = std::move(student), teacher = std::move(teacher), precision,
          translation = std::move(translation)](std::span<const Rollout> rollouts) {
    const distill::ScoringConfig config{
        .top_k = std::min(kNumCandidates, static_cast<uint32_t>(student.config.vocab_size)),
        .precision = precision};
    std::vector<Rollout> read(rollouts.begin(), rollouts.end());
    for (Rollout& rollout : read)
      if (rollout.response_ids.size() > io::kMaxSampleTokens)
        rollout.response_ids.resize(io::kMaxSampleTokens);
    model::Workspace workspace, teacher_workspace;
    auto scores = distill::score_student(student, read, config, workspace);
    if (teacher)
      distill::score_teacher(scores, *teacher, read, config, teacher_workspace,
                             translation ? &*translation : nullptr);
    return scores;
  };
}

void write_samples(const Path& folder, const Suite& suite, const text::Tokenizer& tokenizer, size_t count,
                   const ScoreResponses& score) {
  if (count == 0) return;
  const ResponseFile responses(folder / "responses.jsonl", suite);
  std::vector<ResponseId> first;  // response to each question
  for (const ResponseId& id : all_responses(suite))
    if (id.sample == 0 && responses.line(id)) first.push_back(id);
  std::vector<ResponseId> chosen;
  std::vector<Rollout> rollouts;
  for (const size_t i : choose_samples(first.size(), count)) {
    chosen.push_back(first[i]);
    rollouts.push_back(io::parse_rollout(*responses.line(first[i]), responses.where(first[i]), {}).rollout);
  }
  const std::vector<Scores> scores = score(rollouts);
  std::vector<ResponseSample> samples;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Benchmark& benchmark = suite.benchmarks[chosen[i].benchmark];
    samples.push_back(
        make_sample(rollouts[i], scores[i], &benchmark.questions[chosen[i].question], tokenizer));
    samples.back().benchmark = benchmark.name;
  }
  io::write_samples(folder / "samples.jsonl", samples);
}

}  // namespace ropd::eval
