// Both models in this process as a Scorer: the student where it is trained, the teacher mapped from its
// files, whole or layer by layer.
#pragma once
#include <functional>
#include <optional>

#include "distill/scorer.h"
#include "distill/scoring.h"

namespace ropd::distill {

struct LocalScorerConfig {
  ScoringConfig student;
  ScoringConfig teacher;
  bool keeps_memory = true;  // workspaces stay between calls; those of large models are better given back
  std::function<void()> release_teacher = {};  // gives the teacher's mapped pages back; may be empty
  StageProgress progress = {};
};

// Rollouts that are scored together.
struct ScoringLot {
  std::span<const Rollout> rollouts;  // until the next lot is asked for
  std::vector<Scores> known = {};  // [rollouts] the student's side, or its candidates alone; empty: not known
};

class LocalScorer final : public Scorer {
 public:
  // `student` gives views of the weights as they are; `teacher` those that are to be used now, which may be
  // streamed; without one there are scores of the student alone. A translation is for a teacher with another
  // tokenizer.
  LocalScorer(std::function<model::Weights()> student, std::function<model::Weights()> teacher,
              std::optional<TeacherTranslation> translation, LocalScorerConfig config);

  Scoring score(std::span<const Rollout> rollouts, std::vector<Scores> sampled) override;
  TeacherRows teacher_rows(std::span<const TrainingItem> items) override;
  model::StreamCounts streamed() const override { return streamed_; }

  // Lot after lot until `next` has none, each one's scores to `take`. Weights are made ready for passes once.
  void score_lots(const std::function<std::optional<ScoringLot>()>& next,
                  const std::function<void(Scoring&& scoring)>& take);
  // Whether scores taken while these were sampled are those of a pass; warns where not.
  bool agrees(std::span<const Rollout> rollouts, std::span<const Scores> sampled);

  // Tokens below which passes are not worth their beginning.
  uint64_t least_tokens() const;
  // Positions that go through a streamed model at once, which is read for every pass; nothing where none is.
  std::optional<uint64_t> pass_tokens() const;

 private:
  const std::function<model::Weights()> student_;
  const std::function<model::Weights()> teacher_;
  const std::optional<TeacherTranslation> translation_;
  const LocalScorerConfig config_;
  model::Workspace student_workspace_, teacher_workspace_;
  model::StreamCounts streamed_;

  ScoringProgress progress(const char* stage, size_t total) const;
  void give_back(model::Workspace& workspace) const;
  void use_teacher(const model::Weights& teacher,
                   const std::function<void(const model::Weights& teacher)>& work);
};

}  // namespace ropd::distill
