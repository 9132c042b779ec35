// Scoring by teacher forcing: what the student and the teacher say about every position of recorded responses
// (method.md section 2). Nothing stored with a rollout but its tokens is used. A rollout's scores have the
// same bits whatever it is batched with; with the rollout engine's precision the sampled log-probabilities
// equal the ones seen while sampling. A streamed model (model/layer_stream.h) goes through its layers with as
// many batches at a time as its memory allows, and has the same bits.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "distill/supervision.h"
#include "model/forward.h"
#include "records/rollout.h"
#include "records/scores.h"

namespace ropd::distill {

using kernels::Precision;

struct ScoringConfig {
  uint32_t top_k = ObjectiveDefaults::top_k;  // candidates; 0 = only the recorded token
  Precision precision = Precision::f32;
  float temperature = static_cast<float>(ObjectiveDefaults::temperature);  // logits are divided by it
  int64_t batch_tokens = 8192;  // sequences packed into one pass; a longer one goes alone
};

// Called after every pass and, of a large model, before every layer, by one thread at a time, with the number of
// rollouts and response tokens done in all; those of a pass count by the share of the layers they are through.
using ScoringProgress = std::function<void(double rollouts, uint64_t tokens)>;

// The states after the last norm that predict each token of each response [sum of responses, D], by one
// packed pass; of a streamed model by as many as its memory asks for.
Buffer predicting_states(const model::Weights& weights, std::span<const model::PromptedResponse> responses,
                         Precision precision, model::Workspace& workspace,
                         const model::OnLayer& on_layer = {});

// Those of some tokens of each response only, by passes over batch_tokens: [sum of positions, D]. positions
// [responses]: ascending.
Buffer states_before(const model::Weights& weights, std::span<const model::PromptedResponse> responses,
                     std::span<const std::vector<uint32_t>> positions, Precision precision,
                     model::Workspace& workspace, int64_t batch_tokens = ScoringConfig{}.batch_tokens);

// Candidates, student log-probabilities, sampled log-probabilities and entropy of every rollout.
std::vector<Scores> score_student(const model::Weights& student, std::span<const Rollout> rollouts,
                                  const ScoringConfig& config, model::Workspace& workspace,
                                  const ScoringProgress& progress = {});

// One of 64 responses whose scores were taken while they were sampled (rollout/sampling_scores.h) is scored again,
// because nothing else would notice if those differed.
template <class Record>
std::vector<Record> to_check(std::span<const Record> records) {
  std::vector<Record> chosen;
  for (size_t i = 0; i < records.size(); i += 64) chosen.push_back(records[i]);
  return chosen;
}
// Whether scores taken while sampling are those of score_student().
bool agree_with_pass(std::span<const Scores> sampled, const model::Weights& student,
                     std::span<const Rollout> rollouts, const ScoringConfig& config,
                     model::Workspace& workspace, const ScoringProgress& progress = {});

// How a teacher with another tokenizer reads a rollout: its own prompt, the response text in its own tokens,
// and for each student position the teacher position that predicts at the same byte (-1: none).
struct TeacherReading {
  std::vector<Token> prompt_ids;
  std::vector<Token> response_ids;
  std::vector<int32_t> position;  // [student response] into the teacher's response
};

struct TeacherTranslation {
  std::vector<Token> teacher_id;  // [student vocabulary], -1 = unmappable
  std::function<TeacherReading(const Rollout&)> read;
};

// Adds the teacher's side to scores of the same rollouts. Without a translation both models share one
// vocabulary.
void score_teacher(std::span<Scores> scores, const model::Weights& teacher, std::span<const Rollout> rollouts,
                   const ScoringConfig& config, model::Workspace& workspace,
                   const TeacherTranslation* translation = nullptr, const ScoringProgress& progress = {});

// Tasks for threads that take one after the other: enough tokens for several responses to share a prompt, but
// fewer towards the end, so that all threads end at about the same time.
std::vector<std::pair<size_t, size_t>> share_out(size_t count, size_t threads, int64_t max_tokens,
                                                 const std::function<int64_t(size_t)>& length);

// Refuses rollouts without prompt or response, or longer than the model's context, naming query and sample.
void check_rollouts(std::span<const Rollout> rollouts, const ModelConfig& config);

}  // namespace ropd::distill
