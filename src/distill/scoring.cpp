#include "distill/scoring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"
#include "model/layer_stream.h"

namespace ropd::distill {
namespace {

using Range = std::pair<size_t, size_t>;  // [begin, end)

// Responses that go through the layers together, and the rows that predict their tokens: prompt - 1 ..
// prompt + response - 2 of each sequence.
struct ScoredBatch {
  model::PackedBatch batch;
  std::vector<std::pair<int64_t, int64_t>> predicting;
};

ScoredBatch pack_batch(std::span<const model::PromptedResponse> responses) {
  auto [batch, first_rows] = model::pack_responses(responses, model::Prompts::shared);
  ScoredBatch result{std::move(batch), {}};
  for (size_t i = 0; i < responses.size(); ++i)
    result.predicting.emplace_back(first_rows[i],
                                   first_rows[i] + static_cast<int64_t>(responses[i].response.size()));
  return result;
}

Buffer predicting_rows(const Buffer& hidden, int64_t width, const ScoredBatch& batch) {
  int64_t rows = 0;
  for (const auto& [begin, end] : batch.predicting) rows += end - begin;
  Buffer gathered(static_cast<size_t>(rows * width));
  int64_t to = 0;
  for (const auto& [begin, end] : batch.predicting) {
    std::copy_n(hidden.data() + begin * width, (end - begin) * width, gathered.data() + to * width);
    to += end - begin;
  }
  return gathered;
}

int64_t length_of(const model::PromptedResponse& response) {
  return static_cast<int64_t>(response.prompt.size() + response.response.size());
}

// What a pass through a streamed model does besides the layers.
struct LayerPass {
  bool uses_head = true;
  std::function<void(Range responses, size_t layers)> on_layer = {};  // that they are through
  std::function<void(Range responses, const Buffer& rows)> take;      // of every batch, its predicting rows
};

// All responses through a streamed model, in order: batches of batch_tokens, as many of them in a pass as the
// stream's memory allows.
void pass_by_layers(const model::Weights& weights, std::span<const model::PromptedResponse> responses,
                    int64_t batch_tokens, Precision precision, model::Workspace& workspace,
                    const LayerPass& work) {
  model::LayerStream& stream = *weights.stream;
  const auto ranges =
      model::pack_in_order(responses.size(), batch_tokens, [&](size_t i) { return length_of(responses[i]); });
  const auto tokens_of_batch = [&](size_t batch) {
    int64_t tokens = 0;
    for (size_t i = ranges[batch].first; i < ranges[batch].second; ++i) tokens += length_of(responses[i]);
    return tokens;
  };
  int64_t largest = 0;
  for (size_t i = 0; i < ranges.size(); ++i) largest = std::max(largest, tokens_of_batch(i));
  for (const auto& [first, last] :
       model::pack_in_order(ranges.size(), stream.budget(largest).positions, tokens_of_batch)) {
    std::vector<ScoredBatch> batches;
    std::vector<model::PackedBatch> packed;
    for (size_t i = first; i < last; ++i) {
      batches.push_back(pack_batch(responses.subspan(ranges[i].first, ranges[i].second - ranges[i].first)));
      packed.push_back(std::move(batches.back().batch));
    }
    std::vector<Buffer> states(packed.size());
    const std::pair whole(ranges[first].first, ranges[last - 1].second);
    model::LayerStream::Pass pass(stream, largest);
    model::forward_by_layers(states, weights, packed, precision, workspace, [&](size_t layer) {
      pass.enter(layer);
      if (work.on_layer) work.on_layer(whole, layer);
    });
    if (work.uses_head) pass.enter(stream.head());
    for (size_t i = first; i < last; ++i) {
      Buffer& hidden = states[i - first];
      const Buffer rows = predicting_rows(hidden, weights.config.hidden_size, batches[i - first]);
      hidden = {};
      work.take(ranges[i], rows);
    }
    pass.finish();
  }
}

// Calls take_rows(head, items, rows) for all responses, those to the same prompt one behind the other, with
// the states that predict them; it returns how many tokens it has scored. Threads take items of their own when
// the model is small; what a response is scored with shows in no bit of its scores.
template <class TakeRows>
void score_all(const model::Weights& weights, std::span<const model::PromptedResponse> responses,
               const ScoringConfig& config, model::Workspace& workspace, const ScoringProgress& progress,
               const TakeRows& take_rows) {
  std::vector<size_t> order;
  std::vector<model::PromptedResponse> ordered;
  for (const auto& group : model::group_by_prompt(responses))
    for (const size_t i : group) {
      order.push_back(i);
      ordered.push_back(responses[i]);
    }
  const auto added_length = [&](size_t i) {  // behind the response before it, which may have the same prompt
    const bool is_shared = i > 0 && std::ranges::equal(ordered[i].prompt, ordered[i - 1].prompt);
    return is_shared ? static_cast<int64_t>(ordered[i].response.size()) : length_of(ordered[i]);
  };
  size_t done = 0;
  uint64_t tokens = 0;
  const auto take = [&](const model::Linear& head, const Range& range, const Buffer& rows) {
    return take_rows(head, std::span(order).subspan(range.first, range.second - range.first), rows);
  };
  const auto report = [&](const Range& range, uint64_t new_tokens) {
    done += range.second - range.first;
    tokens += new_tokens;
    if (progress) progress(static_cast<double>(done), tokens);
  };
  const auto report_layers = [&](const Range& range, size_t layers) {
    const double share =
        static_cast<double>(layers) / static_cast<double>(weights.layers.size() + 1);  // and the head
    uint64_t passing = 0;
    for (size_t i = range.first; i < range.second; ++i) passing += ordered[i].response.size();
    progress(static_cast<double>(done) + share * static_cast<double>(range.second - range.first),
             tokens + static_cast<uint64_t>(share * static_cast<double>(passing)));
  };
  const auto states = [&](const model::Weights& used, const Range& range, model::Workspace& memory,
                          const model::OnLayer& on_layer = {}) {
    return predicting_states(used, std::span(ordered).subspan(range.first, range.second - range.first),
                             config.precision, memory, on_layer);
  };
  if (weights.stream) {
    LayerPass work{
        .take = [&](Range range, const Buffer& rows) { report(range, take(weights.head, range, rows)); }};
    if (progress) work.on_layer = report_layers;
    pass_by_layers(weights, ordered, config.batch_tokens, config.precision, workspace, work);
    return;
  }
  if (weights.execution.sharing == model::Sharing::products) {
    for (const Range& range : model::pack_in_order(order.size(), config.batch_tokens,
                                                   [&](size_t i) { return length_of(ordered[i]); })) {
      const auto on_layer = [&](size_t layers) {
        if (progress) report_layers(range, layers);
      };
      report(range, take(weights.head, range, states(weights, range, workspace, on_layer)));
    }
    return;
  }
  const model::Weights packed =
      weights.head.packed ? weights : model::pack_weights(weights, config.precision);
  const auto ranges = share_out(order.size(), num_workers(), config.batch_tokens, added_length);
  workspace.provide_threads(num_workers(ranges.size()));
  std::mutex reporting;
  parallel_tasks(ranges.size(), [&](size_t i, size_t thread) {
    const uint64_t new_tokens =
        take(packed.head, ranges[i], states(packed, ranges[i], *workspace.of_threads[thread]));
    const std::lock_guard lock(reporting);
    report(ranges[i], new_tokens);
  });
}

kernels::VocabularyScores score_head(const Buffer& rows, const model::Linear& head, Precision precision,
                                     const kernels::ScoreRequest& request) {
  return head.packed ? kernels::score_vocabulary(rows, *head.packed, request)
                     : kernels::score_vocabulary(rows, head.stored, precision, request);
}

int64_t tokens_of(const Rollout& rollout) {
  return static_cast<int64_t>(rollout.prompt_ids.size() + rollout.response_ids.size());
}

}  // namespace

std::vector<std::pair<size_t, size_t>> share_out(size_t count, size_t threads, int64_t max_tokens,
                                                 const std::function<int64_t(size_t)>& length) {
  constexpr int64_t kFewest = 512, kMost = 2048;
  std::vector<int64_t> lengths(count);
  for (size_t i = 0; i < count; ++i) lengths[i] = length(i);
  int64_t left = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  std::vector<std::pair<size_t, size_t>> tasks;
  int64_t room = 0;
  for (size_t i = 0; i < count; ++i) {
    if (tasks.empty() || lengths[i] > room) {
      tasks.emplace_back(i, i);
      room = std::min(max_tokens, std::clamp(left / (2 * static_cast<int64_t>(threads)), kFewest, kMost));
    }
    tasks.back().second = i + 1;
    room -= lengths[i];
    left -= lengths[i];
  }
  return tasks;
}

void check_rollouts(std::span<const Rollout> rollouts, const ModelConfig& config) {
  for (const Rollout& rollout : rollouts) {
    const auto which = [&] {
      return "query " + rollout.query_id + ", sample " + std::to_string(rollout.sample);
    };
    if (rollout.prompt_ids.empty()) fail(which(), ": the prompt is empty; there is no state to supervise");
    if (rollout.response_ids.empty()) fail(which(), ": the response is empty; there is nothing to score");
    if (tokens_of(rollout) > config.max_position_embeddings)
      fail(which(), ": prompt and response have ", tokens_of(rollout),
           " tokens, the model has max_position_embeddings = ", config.max_position_embeddings);
    for (const auto* ids : {&rollout.prompt_ids, &rollout.response_ids})
      for (const Token id : *ids)
        if (id < 0 || id >= config.vocab_size)
          fail(which(), ": id ", id, " is outside the vocabulary of ", config.vocab_size,
               " (rollouts of another model?)");
  }
}

Buffer predicting_states(const model::Weights& weights, std::span<const model::PromptedResponse> responses,
                         Precision precision, model::Workspace& workspace, const model::OnLayer& on_layer) {
  const int64_t width = weights.config.hidden_size;
  if (weights.stream) {
    size_t rows = 0, to = 0;
    for (const auto& response : responses) rows += response.response.size();
    Buffer all(rows * static_cast<size_t>(width));
    pass_by_layers(weights, responses, ScoringConfig{}.batch_tokens, precision, workspace,
                   {.uses_head = false, .take = [&](Range, const Buffer& some) {
                      std::copy_n(some.data(), some.size(), all.data() + to);
                      to += some.size();
                    }});
    return all;
  }
  const ScoredBatch packed = pack_batch(responses);
  Buffer hidden(packed.batch.tokens.size() * static_cast<size_t>(width));
  model::forward(hidden, weights, packed.batch, precision, workspace, on_layer);
  return predicting_rows(hidden, width, packed);
}

Buffer states_before(const model::Weights& weights, std::span<const model::PromptedResponse> responses,
                     std::span<const std::vector<uint32_t>> positions, Precision precision,
                     model::Workspace& workspace, int64_t batch_tokens) {
  const auto width = static_cast<size_t>(weights.config.hidden_size);
  size_t count = 0, to = 0;
  for (const auto& chosen : positions) count += chosen.size();
  Buffer all(count * width);
  const auto take = [&](const Range& range, const Buffer& rows) {
    size_t first_row = 0;
    for (size_t i = range.first; i < range.second; ++i) {
      for (const uint32_t t : positions[i])
        std::copy_n(rows.data() + (first_row + t) * width, width, all.data() + width * to++);
      first_row += responses[i].response.size();
    }
  };
  if (weights.stream) {
    pass_by_layers(weights, responses, batch_tokens, precision, workspace,
                   {.uses_head = false, .take = take});
    return all;
  }
  for (const Range& range : model::pack_in_order(responses.size(), batch_tokens,
                                                 [&](size_t i) { return length_of(responses[i]); }))
    take(range, predicting_states(weights, responses.subspan(range.first, range.second - range.first),
                                  precision, workspace));
  return all;
}

std::vector<Scores> score_student(const model::Weights& student, std::span<const Rollout> rollouts,
                                  const ScoringConfig& config, model::Workspace& workspace,
                                  const ScoringProgress& progress) {
  check_rollouts(rollouts, student.config);
  std::vector<Scores> all(rollouts.size());
  std::vector<model::PromptedResponse> responses;
  for (const Rollout& rollout : rollouts) responses.push_back({rollout.prompt_ids, rollout.response_ids});
  const auto take_rows = [&](const model::Linear& head, std::span<const size_t> items, const Buffer& rows) {
    std::vector<int32_t> sampled;
    for (const size_t i : items)
      sampled.insert(sampled.end(), rollouts[i].response_ids.begin(), rollouts[i].response_ids.end());
    std::vector<int64_t> one_each(sampled.size() + 1);
    for (size_t i = 0; i < one_each.size(); ++i) one_each[i] = static_cast<int64_t>(i);
    const kernels::ScoreRequest request{config.temperature, config.top_k, /*with_entropy=*/true, one_each,
                                        sampled};
    const auto result = score_head(rows, head, config.precision, request);
    size_t row = 0;
    for (const size_t i : items) {
      const size_t length = rollouts[i].response_ids.size(), k = config.top_k;
      const auto part = [&](const auto& values, size_t stride) {
        return std::vector(values.begin() + static_cast<ptrdiff_t>(row * stride),
                           values.begin() + static_cast<ptrdiff_t>((row + length) * stride));
      };
      all[i] = {.query_id = rollouts[i].query_id,
                .sample = rollouts[i].sample,
                .top_k = config.top_k,
                .candidates = part(result.top_ids, k),
                .student_logprobs = part(result.top_logprobs, k),
                .sampled_logprobs = part(result.given_logprobs, 1),
                .student_entropy = part(result.entropy, 1)};
      row += length;
    }
    return static_cast<uint64_t>(sampled.size());
  };
  score_all(student, responses, config, workspace, progress, take_rows);
  return all;
}

bool agree_with_pass(std::span<const Scores> sampled, const model::Weights& student,
                     std::span<const Rollout> rollouts, const ScoringConfig& config,
                     model::Workspace& workspace, const ScoringProgress& progress) {
  const auto passed = score_student(student, rollouts, config, workspace, progress);
  return std::ranges::equal(passed, sampled, [](const Scores& a, const Scores& b) {
    return a.candidates == b.candidates && a.student_logprobs == b.student_logprobs &&
           a.sampled_logprobs == b.sampled_logprobs && a.student_entropy == b.student_entropy;
  });
}

void score_teacher(std::span<Scores> scores, const model::Weights& teacher, std::span<const Rollout> rollouts,
                   const ScoringConfig& config, model::Workspace& workspace,
                   const TeacherTranslation* translation, const ScoringProgress& progress) {
  constexpr float kImpossible = -std::numeric_limits<float>::infinity();
  std::vector<TeacherReading> readings;
  if (translation)
    for (const Rollout& rollout : rollouts) readings.push_back(translation->read(rollout));
  std::vector<model::PromptedResponse> responses;
  for (size_t i = 0; i < rollouts.size(); ++i)
    responses.push_back(translation
                            ? model::PromptedResponse{readings[i].prompt_ids, readings[i].response_ids}
                            : model::PromptedResponse{rollouts[i].prompt_ids, rollouts[i].response_ids});
  const auto map = [&](Token id) {
    return translation ? translation->teacher_id[static_cast<size_t>(id)] : id;
  };

  const auto take_rows = [&](const model::Linear& head, std::span<const size_t> items, const Buffer& rows) {
    uint64_t tokens = 0;
    std::vector<int64_t> given_begins = {0};
    std::vector<int32_t> given;
    for (const size_t i : items) {
      const size_t k = scores[i].top_k;
      // For each teacher position the mapped ids of the student position that reads it, or none.
      std::vector<int32_t> student_position(responses[i].response.size(), -1);
      for (size_t t = 0; t < rollouts[i].response_ids.size(); ++t) {
        const int32_t at = translation ? readings[i].position[t] : static_cast<int32_t>(t);
        if (at >= 0) student_position[static_cast<size_t>(at)] = static_cast<int32_t>(t);
      }
      for (const int32_t t : student_position) {
        if (t >= 0) {
          for (size_t j = 0; j < k; ++j)
            given.push_back(std::max(0, map(scores[i].candidates[static_cast<size_t>(t) * k + j])));
          given.push_back(std::max(0, map(rollouts[i].response_ids[static_cast<size_t>(t)])));
        }
        given_begins.push_back(static_cast<int64_t>(given.size()));
      }
    }
    const kernels::ScoreRequest request{config.temperature, config.top_k, /*with_entropy=*/false,
                                        given_begins, given};
    const auto result = score_head(rows, head, config.precision, request);

    size_t row = 0;
    for (const size_t i : items) {
      Scores& score = scores[i];
      const size_t length = rollouts[i].response_ids.size(), k = score.top_k;
      score.teacher_logprobs.assign(length * k, kImpossible);
      score.teacher_sampled_logprobs.assign(length, kImpossible);
      score.overlap.assign(k > 0 ? length : 0, 0.0f);
      if (translation) score.is_aligned.assign(length, 0);
      for (size_t t = 0; t < length; ++t) {
        const int32_t at = translation ? readings[i].position[t] : static_cast<int32_t>(t);
        if (at < 0) continue;
        if (translation) score.is_aligned[t] = 1;
        const size_t teacher_row = row + static_cast<size_t>(at);
        const float* logprobs = result.given_logprobs.data() + given_begins[teacher_row];
        const auto* top = result.top_ids.data() + teacher_row * config.top_k;
        for (size_t j = 0; j < k; ++j) {
          const Token id = map(score.candidates[t * k + j]);
          if (id < 0) continue;
          score.teacher_logprobs[t * k + j] = logprobs[j];
          if (std::find(top, top + config.top_k, id) != top + config.top_k)
            score.overlap[t] += 1.0f / static_cast<float>(k);
        }
        if (map(rollouts[i].response_ids[t]) >= 0) score.teacher_sampled_logprobs[t] = logprobs[k];
      }
      row += responses[i].response.size();
      tokens += length;
    }
    return tokens;
  };
  score_all(teacher, responses, config, workspace, progress, take_rows);
}

}  // namespace ropd::distill
