#include "distill/local_scorer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/memory_info.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "model/layer_stream.h"

namespace ropd::distill {

LocalScorer::LocalScorer(std::function<model::Weights()> student, std::function<model::Weights()> teacher,
                         std::optional<TeacherTranslation> translation, LocalScorerConfig config)
    : student_(std::move(student)),
      teacher_(std::move(teacher)),
      translation_(std::move(translation)),
      config_(std::move(config)) {}

ScoringProgress LocalScorer::progress(const char* stage, size_t total) const {
  if (!config_.progress) return {};
  config_.progress(stage, 0, total, 0);  // the first pass of a large model takes minutes
  return [this, stage, total](double done, uint64_t tokens) { config_.progress(stage, done, total, tokens); };
}

void LocalScorer::give_back(model::Workspace& workspace) const {
  if (config_.keeps_memory) return;
  workspace = {};
  return_freed_memory();
}

// Gives back what work with the teacher took; of a streamed one counts what it reads.
void LocalScorer::use_teacher(const model::Weights& teacher,
                              const std::function<void(const model::Weights& teacher)>& work) {
  const auto before = teacher.stream ? teacher.stream->counts() : model::StreamCounts{};
  work(teacher);
  give_back(teacher_workspace_);
  if (teacher.stream) {  // its pages went with its passes
    streamed_.passes += teacher.stream->counts().passes - before.passes;
    streamed_.bytes += teacher.stream->counts().bytes - before.bytes;
  } else if (config_.release_teacher) {
    config_.release_teacher();
  }
}

// Scores taken while sampling have the bits of a pass over the finished responses, so that pass is left out.
bool LocalScorer::agrees(std::span<const Rollout> rollouts, std::span<const Scores> sampled) {
  if (agree_with_pass(sampled, student_(), rollouts, config_.student, student_workspace_,
                      progress("check of scores", rollouts.size())))
    return true;
  log_warning("scores taken while sampling differ from a pass over ", rollouts.size(),
              " of the same responses; using the pass (please report this: they should be equal to the last "
              "bit)");
  return false;
}

Scoring LocalScorer::score(std::span<const Rollout> rollouts, std::vector<Scores> sampled) {
  const Stopwatch watch;
  if (!sampled.empty() && !agrees(to_check(rollouts), to_check(std::span<const Scores>(sampled))))
    sampled.clear();
  const double check_seconds = watch.seconds();
  std::optional<ScoringLot> all = ScoringLot{rollouts, std::move(sampled)};
  Scoring result;
  score_lots([&] { return std::exchange(all, std::nullopt); },
             [&](Scoring&& scoring) { result = std::move(scoring); });
  result.student_seconds += check_seconds;
  return result;
}

void LocalScorer::score_lots(const std::function<std::optional<ScoringLot>()>& next,
                             const std::function<void(Scoring&& scoring)>& take) {
  std::optional<model::Weights> student, teacher;  // once they are needed
  const auto prepare = [](std::optional<model::Weights>& place, const std::function<model::Weights()>& find,
                          Precision precision) {
    if (place && place->head.packed) return;
    place = find();  // the others are as they are to be used now
    const bool is_small = !place->stream && place->execution.sharing == model::Sharing::sequences;
    if (is_small) place = model::pack_weights(*place, precision);
  };
  while (auto lot = next()) {
    const auto rollouts = lot->rollouts;
    Scoring result{.scores = std::move(lot->known)};
    const Stopwatch student_watch;
    if (result.scores.empty()) {
      prepare(student, student_, config_.student.precision);
      result.scores = score_student(*student, rollouts, config_.student, student_workspace_,
                                    progress("student scores", rollouts.size()));
    }
    give_back(student_workspace_);
    result.student_seconds = student_watch.seconds();
    const Stopwatch teacher_watch;
    if (teacher_) {
      prepare(teacher, teacher_, config_.teacher.precision);
      use_teacher(*teacher, [&](const model::Weights& weights) {
        score_teacher(result.scores, weights, rollouts, config_.teacher, teacher_workspace_,
                      translation_ ? &*translation_ : nullptr, progress("teacher scores", rollouts.size()));
      });
    }
    result.teacher_seconds = teacher_watch.seconds();
    take(std::move(result));
  }
}

uint64_t LocalScorer::least_tokens() const {
  constexpr uint64_t kOfAThread = 256, kOfALargeModel = 2048;
  const model::Execution execution = (teacher_ ? teacher_ : student_)().execution;
  return execution.sharing == model::Sharing::sequences ? kOfAThread * num_threads() : kOfALargeModel;
}

std::optional<uint64_t> LocalScorer::pass_tokens() const {
  std::optional<uint64_t> most;
  const auto look_at = [&](const std::function<model::Weights()>& find, int64_t batch_tokens) {
    if (!find) return;
    if (const model::Weights weights = find(); weights.stream)
      most =
          std::max(most.value_or(0), static_cast<uint64_t>(weights.stream->budget(batch_tokens).positions));
  };
  look_at(student_, config_.student.batch_tokens);
  look_at(teacher_, config_.teacher.batch_tokens);
  return most;
}

TeacherRows LocalScorer::teacher_rows(std::span<const TrainingItem> items) {
  TeacherRows rows;
  use_teacher(teacher_(), [&](const model::Weights& teacher) {
    rows = distill::teacher_rows(teacher, items, config_.teacher.precision, teacher_workspace_);
    if (teacher.stream) teacher.stream->hold_head();  // whoever turns the states into logits reads all of it
  });
  return rows;
}

}  // namespace ropd::distill
