#include "distill/local_scorer.h"

#include "base/log.h"
#include "base/memory_info.h"
#include "base/stopwatch.h"

namespace ropd::distill {

LocalScorer::LocalScorer(std::function<model::Weights()> student, std::function<model::Weights()> teacher,
                         std::optional<TeacherTranslation> translation, LocalScorerConfig config)
    : student_(std::move(student)),
      teacher_(std::move(teacher)),
      translation_(std::move(translation)),
      config_(std::move(config)) {}

ScoringProgress LocalScorer::progress(const char* stage, size_t total) const {
  if (!config_.progress) return {};
  return [this, stage, total](size_t done, uint64_t tokens) { config_.progress(stage, done, total, tokens); };
}

void LocalScorer::give_back(model::Workspace& workspace) const {
  if (config_.keeps_memory) return;
  workspace = {};
  return_freed_memory();
}

// Calls work with the teacher and gives back what it took; of a streamed one counts what it reads.
void LocalScorer::use_teacher(const std::function<void(const model::Weights& teacher)>& work) {
  const model::Weights teacher = teacher_();
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
std::vector<Scores> LocalScorer::score_student(std::span<const Rollout> rollouts,
                                               std::vector<Scores> sampled) {
  const model::Weights student = student_();
  if (!sampled.empty()) {
    if (agree_with_pass(sampled, student, rollouts, config_.student, student_workspace_)) return sampled;
    log_warning("scores taken while sampling differ from a pass over the same ", rollouts.size(),
                " responses; using the pass (please report this: they should be equal to the last bit)");
  }
  return distill::score_student(student, rollouts, config_.student, student_workspace_,
                                progress("student scores", rollouts.size()));
}

Scoring LocalScorer::score(std::span<const Rollout> rollouts, std::vector<Scores> sampled) {
  Scoring result;
  const Stopwatch student_watch;
  result.scores = score_student(rollouts, std::move(sampled));
  give_back(student_workspace_);
  result.student_seconds = student_watch.seconds();
  const Stopwatch teacher_watch;
  use_teacher([&](const model::Weights& teacher) {
    score_teacher(result.scores, teacher, rollouts, config_.teacher, teacher_workspace_,
                  translation_ ? &*translation_ : nullptr, progress("teacher scores", rollouts.size()));
  });
  result.teacher_seconds = teacher_watch.seconds();
  return result;
}

TeacherRows LocalScorer::teacher_rows(std::span<const TrainingItem> items) {
  TeacherRows rows;
  use_teacher([&](const model::Weights& teacher) {
    rows = distill::teacher_rows(teacher, items, config_.teacher.precision, teacher_workspace_);
    if (teacher.stream) teacher.stream->hold_head();  // whoever turns the states into logits reads all of it
  });
  return rows;
}

}  // namespace ropd::distill
