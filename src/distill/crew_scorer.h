// The scorers of all ranks as one: the leader deals rollouts out as ranks get done. Scores of a rollout depend on it
// and on the two models alone, so who scored it shows nowhere.
#pragma once
#include <optional>

#include "comm/crew.h"
#include "comm/lots.h"
#include "distill/early_scores.h"
#include "distill/local_scorer.h"

namespace ropd::distill {

// Tokens of a lot for a scorer. `fair_share`: of all tokens, a scoring rank's. Lots for models in memory get smaller
// towards the end; a streamed model is read for every pass, so its lots are whole passes, or the share.
comm::LotRange lot_tokens(const LocalScorer& scorer, uint64_t fair_share);

// On every rank, around that rank's own scorer; the others serve it through the crew. A teacher may be too large
// for every machine: then only some ranks score.
class CrewScorer final : public Scorer {
 public:
  // Both must outlive it. `progress` is of all ranks together; the own scorer should have none. scoring_ranks: the
  // last so many ranks score, all of them where it is 0 or there are not so many.
  CrewScorer(LocalScorer& own, comm::Crew& crew, StageProgress progress = {}, uint64_t scoring_ranks = 0);

  // Whether a rank of so many is one of those.
  static bool scores(int rank, int ranks, uint64_t scoring_ranks);

  // What sampling gave is checked by the leader while the others score already.
  Scoring score(std::span<const Rollout> rollouts, std::vector<Scores> sampled) override;
  // Of this rank's own teacher.
  TeacherRows teacher_rows(std::span<const TrainingItem> items) override { return own_.teacher_rows(items); }
  // Where some ranks score only, while the others sample (rollout::Bystanders): responses that are finished are
  // scored at once. Whoever calls sees to it that score() is next, of the same student.
  void begin_early();
  void offer_early(const Rollout& rollout, const Scores* sampled) { early_->offer(rollout, sampled); }
  void end_early() { early_->end(); }
  void serve_early() { serve_early_scores(crew_.world(), own_); }

  // What this rank has read, likewise.
  model::StreamCounts streamed() const override { return own_.streamed(); }

 private:
  LocalScorer& own_;
  comm::Crew& crew_;
  const StageProgress progress_;
  const uint64_t scoring_ranks_;
  const bool takes_part_;
  const size_t duty_;
  std::optional<EarlyScores> early_;  // the leader's, once it was begun

  // One of 64 rollouts, scored again.
  struct Check {
    std::vector<Rollout> rollouts = {};
    std::vector<Scores> sampled = {};
    bool agrees = true;
  };

  void serve(ByteReader& call);
  Scoring spread(std::span<const Rollout> rollouts, std::vector<Scores> sampled, Check& check);
  uint64_t fair_share(std::span<const uint64_t> tokens) const;
};

}  // namespace ropd::distill
