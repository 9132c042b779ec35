#include "distill/crew_scorer.h"

#include <algorithm>
#include <cassert>

#include "base/stopwatch.h"
#include "distill/peer_bytes.h"

namespace ropd::distill {
namespace {

// Ranks work side by side: what the slowest needed is what was waited for.
void add_seconds(Scoring& result, double student, double teacher) {
  result.student_seconds = std::max(result.student_seconds, student);
  result.teacher_seconds = std::max(result.teacher_seconds, teacher);
}

}  // namespace

comm::LotRange lot_tokens(const LocalScorer& scorer, uint64_t fair_share) {
  constexpr uint64_t kMost = 32768;  // several packed passes
  if (const auto pass = scorer.pass_tokens()) {
    const uint64_t whole = std::min(*pass, fair_share);
    return {whole, whole};
  }
  return {scorer.least_tokens(), kMost};
}

bool CrewScorer::scores(int rank, int ranks, uint64_t scoring_ranks) {
  return scoring_ranks == 0 || static_cast<uint64_t>(ranks - rank) <= scoring_ranks;
}

CrewScorer::CrewScorer(LocalScorer& own, comm::Crew& crew, StageProgress progress, uint64_t scoring_ranks)
    : own_(own),
      crew_(crew),
      progress_(std::move(progress)),
      scoring_ranks_(scoring_ranks),
      takes_part_(scores(crew.world().rank(), crew.world().size(), scoring_ranks)),
      duty_(crew.enlist([this](ByteReader& call) { serve(call); })) {}

void CrewScorer::begin_early() {
  const int ranks = crew_.world().size();
  if (!early_) early_.emplace(crew_.world(), ranks - static_cast<int>(scoring_ranks_));
  early_->begin();
}

// Responses are dealt out whole, so equal shares need room for one more.
uint64_t CrewScorer::fair_share(std::span<const uint64_t> tokens) const {
  const int ranks = crew_.world().size();
  uint64_t all = 0, longest = 0, scorers = 0;
  for (const uint64_t one : tokens) {
    all += one;
    longest = std::max(longest, one);
  }
  for (int rank = 0; rank < ranks; ++rank) scorers += scores(rank, ranks, scoring_ranks_);
  return all / scorers + longest;
}

void CrewScorer::serve(ByteReader& call) {
  const auto share = call.get<uint64_t>();
  const bool is_known = call.get<bool>();  // the student's side
  comm::Taker taker(crew_.world());
  double student_seconds = 0, teacher_seconds = 0;
  if (takes_part_) {
    const comm::LotRange wanted = lot_tokens(own_, share);
    std::optional<comm::Lot> lot;
    std::vector<Rollout> rollouts;
    own_.score_lots(
        [&]() -> std::optional<ScoringLot> {
          lot = taker.take(wanted, /*may_wait=*/true);
          if (!lot) return std::nullopt;
          ByteReader reader(lot->about);
          rollouts.assign(lot->size(), {});
          std::vector<Scores> known(is_known ? lot->size() : 0);
          for (Rollout& rollout : rollouts) get(reader, rollout);
          for (Scores& scores : known) get_candidates(reader, scores);
          return ScoringLot{rollouts, std::move(known)};
        },
        [&](Scoring&& scoring) {
          student_seconds += scoring.student_seconds;
          teacher_seconds += scoring.teacher_seconds;
          for (size_t i = 0; i < lot->size(); ++i) {
            ByteWriter result;
            is_known ? put_teachers_side(result, scoring.scores[i]) : put(result, scoring.scores[i]);
            taker.send_result(lot->begin + i, result);
          }
        });
  }
  taker.finish(ByteWriter().put(student_seconds).put(teacher_seconds));
}

Scoring CrewScorer::score(std::span<const Rollout> rollouts, std::vector<Scores> sampled) {
  if (crew_.is_alone()) return own_.score(rollouts, std::move(sampled));
  Check check{to_check(rollouts), to_check(std::span<const Scores>(sampled))};
  Scoring result = spread(rollouts, std::move(sampled), check);
  if (check.agrees) return result;
  check = {};
  return spread(rollouts, {}, check);
}

Scoring CrewScorer::spread(std::span<const Rollout> rollouts, std::vector<Scores> sampled, Check& check) {
  const bool is_known = !sampled.empty();
  Scoring result;  // under the dealer's mutex, once there is one
  result.scores.resize(rollouts.size());
  uint64_t done = 0, tokens = 0;
  const auto keep = [&](size_t index, Scores&& scores) {
    tokens += rollouts[index].response_ids.size();
    result.scores[index] = std::move(scores);
    if (progress_) progress_("scores", ++done, rollouts.size(), tokens);
  };
  std::vector<size_t> left;  // what is not scored yet
  std::vector<uint64_t> costs;
  for (size_t i = 0; i < rollouts.size(); ++i)
    if (auto known = early_ ? early_->take(rollouts[i]) : std::nullopt) {
      keep(i, std::move(*known));
    } else {
      left.push_back(i);
      costs.push_back(rollouts[i].prompt_ids.size() + rollouts[i].response_ids.size());
    }
  if (early_) early_->clear();

  const uint64_t share = fair_share(costs);
  const auto call = crew_.call(duty_, "scoring", ByteWriter().put(share).put(is_known).bytes());
  // A stop request ends no scoring: it is short, and half of it is worth nothing.
  comm::Dealer dealer(crew_.world(), std::move(costs),
                      {.on_result =
                           [&](size_t index, ByteReader& reader) {
                             Scores scores;
                             if (is_known) {
                               scores = std::move(sampled[left[index]]);
                               get_teachers_side(reader, scores);
                             } else {
                               get(reader, scores);
                             }
                             keep(left[index], std::move(scores));
                           },
                       .on_end =
                           [&](ByteReader& reader) {
                             const auto student = reader.get<double>(), teacher = reader.get<double>();
                             add_seconds(result, student, teacher);
                           },
                       .describe =
                           [&](ByteWriter& about, const comm::Lot& lot) {
                             for (size_t i = lot.begin; i < lot.end; ++i) put(about, rollouts[left[i]]);
                             if (!is_known) return;
                             for (size_t i = lot.begin; i < lot.end; ++i)
                               put_candidates(about, sampled[left[i]]);
                           }},
                      comm::Dealer::OnStop::goes_on);
  double student_seconds = 0, teacher_seconds = 0;
  if (is_known) {
    const Stopwatch watch;
    check.agrees = own_.agrees(check.rollouts, check.sampled);
    student_seconds = watch.seconds();
  }
  if (takes_part_) {
    assert(left.size() == rollouts.size());  // who scores early does not lead
    const comm::LotRange wanted = lot_tokens(own_, share);
    comm::Lot lot;
    own_.score_lots(
        [&]() -> std::optional<ScoringLot> {
          lot = dealer.take(wanted);
          if (lot.empty()) return std::nullopt;
          ScoringLot own{rollouts.subspan(lot.begin, lot.size())};
          for (size_t i = lot.begin; is_known && i < lot.end; ++i) own.known.push_back(std::move(sampled[i]));
          return own;
        },
        [&](Scoring&& scoring) {
          student_seconds += scoring.student_seconds;
          teacher_seconds += scoring.teacher_seconds;
          const std::lock_guard lock(dealer.mutex());
          for (size_t i = 0; i < lot.size(); ++i) keep(lot.begin + i, std::move(scoring.scores[i]));
        });
  }
  dealer.finish();
  add_seconds(result, student_seconds, teacher_seconds);
  return result;
}

}  // namespace ropd::distill
