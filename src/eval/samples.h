// The few responses that people may read: chosen, graded, every token with what student and teacher thought of it
// (samples/ of a run, samples.jsonl of evaluations and diagnoses). Reports and the live page show them without a model.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/file.h"
#include "distill/scoring.h"
#include "eval/suite.h"
#include "records/response_sample.h"
#include "records/scores.h"
#include "text/tokenizer.h"

namespace ropd::eval {

inline constexpr size_t kNumSamples = 8;  // of an evaluation

// `count` indices spread evenly over a batch of `size`.
std::vector<size_t> choose_samples(size_t size, size_t count);

// The query gives question and answer; without one the rollout's own answer serves and there is no question.
ResponseSample make_sample(const Rollout& rollout, const Scores& scores, const Query* query,
                           const text::Tokenizer& tokenizer);

// What student and teacher say about responses [rollouts], or about as much of each as a sample keeps.
using ScoreResponses = std::function<std::vector<Scores>(std::span<const Rollout>)>;

// By models of this process; without a teacher its side is absent. A translation is for a teacher whose ids differ.
ScoreResponses score_by(model::Weights student, std::optional<model::Weights> teacher,
                        distill::Precision precision,
                        std::optional<distill::TeacherTranslation> translation = {});

// Writes FOLDER/samples.jsonl: the first response of FOLDER/responses.jsonl to each of `count` questions spread over
// the suite, the same questions for every model. Writes nothing when `count` is 0.
void write_samples(const Path& folder, const Suite& suite, const text::Tokenizer& tokenizer, size_t count,
                   const ScoreResponses& score);

}  // namespace ropd::eval
