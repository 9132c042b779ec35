// Who scores: what student and teacher say about rollouts. One of the three seams of training
// (docs/architecture.md): whoever asks knows neither where the weights lie nor who computes.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "distill/gradient.h"
#include "model/layer_stream.h"
#include "records/rollout.h"
#include "records/scores.h"

namespace ropd::distill {

// Inside a stage; may be empty. done: whole ones, and the share that is done of those in work.
using StageProgress = std::function<void(const char* stage, double done, uint64_t total, uint64_t tokens)>;

struct Scoring {
  std::vector<Scores> scores;  // [rollouts] both sides
  double student_seconds = 0;
  double teacher_seconds = 0;
};

// Not thread-safe.
class Scorer {
 public:
  virtual ~Scorer() = default;

  // Candidates, lS and lT under the student as it is now and the teacher. `sampled` [rollouts]: the student's
  // side where it was taken while these rollouts were sampled from the same weights; empty: not at all.
  [[nodiscard]] virtual Scoring score(std::span<const Rollout> rollouts,
                                      std::vector<Scores> sampled = {}) = 0;

  // For objectives that compare whole distributions.
  [[nodiscard]] virtual TeacherRows teacher_rows(std::span<const TrainingItem> items) = 0;

  // What a teacher that is streamed has read since this was made.
  [[nodiscard]] virtual model::StreamCounts streamed() const { return {}; }
};

}  // namespace ropd::distill
