// Both models in this process as a Scorer: the student where it is trained, the teacher mapped from its
// files, whole or layer by layer.
#pragma once
#include <functional>
#include <optional>

#include "distill/scorer.h"
#include "distill/scoring.h"

namespace ropd::distill {

// Inside a stage; may be empty.
using StageProgress = std::function<void(const char* stage, uint64_t done, uint64_t total, uint64_t tokens)>;

struct LocalScorerConfig {
  ScoringConfig student;
  ScoringConfig teacher;
  bool keeps_memory = true;  // workspaces stay between calls; those of large models are better given back
  std::function<void()> release_teacher = {};  // gives the teacher's mapped pages back; may be empty
  StageProgress progress = {};
};

class LocalScorer final : public Scorer {
 public:
  // `student` gives views of the weights as they are; `teacher` those that are to be used now, which may be
  // streamed. A translation is for a teacher with another tokenizer.
  LocalScorer(std::function<model::Weights()> student, std::function<model::Weights()> teacher,
              std::optional<TeacherTranslation> translation, LocalScorerConfig config);

  Scoring score(std::span<const Rollout> rollouts, std::vector<Scores> sampled) override;
  TeacherRows teacher_rows(std::span<const TrainingItem> items) override;
  model::StreamCounts streamed() const override { return streamed_; }

 private:
  const std::function<model::Weights()> student_;
  const std::function<model::Weights()> teacher_;
  const std::optional<TeacherTranslation> translation_;
  const LocalScorerConfig config_;
  model::Workspace student_workspace_, teacher_workspace_;
  model::StreamCounts streamed_;

  std::vector<Scores> score_student(std::span<const Rollout> rollouts, std::vector<Scores> sampled);
  ScoringProgress progress(const char* stage, size_t total) const;
  void give_back(model::Workspace& workspace) const;
  void use_teacher(const std::function<void(const model::Weights& teacher)>& work);
};

}  // namespace ropd::distill
