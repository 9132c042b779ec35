#include "distill/crew_scorer.h"

#include <algorithm>
#include <cassert>

#include "comm/lots.h"
#include "distill/peer_bytes.h"

namespace ropd::distill {
namespace {

constexpr size_t kLot =
    32;  // rollouts: several packed passes, or something for every thread of a small model

std::span<const Rollout> lot_of(std::span<const Rollout> rollouts, const std::vector<size_t>& lot) {
  return rollouts.subspan(lot.front(), lot.size());  // lots are neighbours
}

// Ranks work side by side: what the slowest needed is what was waited for.
void add_seconds(Scoring& result, double student, double teacher) {
  result.student_seconds = std::max(result.student_seconds, student);
  result.teacher_seconds = std::max(result.teacher_seconds, teacher);
}

}  // namespace

bool CrewScorer::scores(int rank, int ranks, uint64_t scoring_ranks) {
  return scoring_ranks == 0 || static_cast<uint64_t>(ranks - rank) <= scoring_ranks;
}

CrewScorer::CrewScorer(Scorer& own, comm::Crew& crew, StageProgress progress, uint64_t scoring_ranks)
    : own_(own),
      crew_(crew),
      progress_(std::move(progress)),
      scoring_ranks_(scoring_ranks),
      takes_part_(scores(crew.world().rank(), crew.world().size(), scoring_ranks)),
      duty_(crew.enlist([this](ByteReader& call) { serve(call); })) {}

void CrewScorer::serve(ByteReader& call) {
  std::vector<Rollout> rollouts(call.get<uint64_t>());
  for (Rollout& rollout : rollouts) get(call, rollout);
  comm::Taker taker(crew_.world());
  double student_seconds = 0, teacher_seconds = 0;
  while (const auto lot = takes_part_ ? taker.take(kLot, /*may_wait=*/true) : std::nullopt) {
    const Scoring scoring = own_.score(lot_of(rollouts, *lot));
    student_seconds += scoring.student_seconds;
    teacher_seconds += scoring.teacher_seconds;
    for (size_t i = 0; i < lot->size(); ++i) {
      ByteWriter result;
      put(result, scoring.scores[i]);
      taker.send_result((*lot)[i], result);
    }
  }
  taker.finish(ByteWriter().put(student_seconds).put(teacher_seconds));
}

void CrewScorer::begin_early() {
  const int ranks = crew_.world().size();
  if (!early_) early_.emplace(crew_.world(), ranks - static_cast<int>(scoring_ranks_));
  early_->begin();
}

Scoring CrewScorer::score(std::span<const Rollout> rollouts, std::vector<Scores> sampled) {
  if (crew_.is_alone()) return own_.score(rollouts, std::move(sampled));
  Scoring result;  // under the dealer's mutex, once there is one
  result.scores.resize(rollouts.size());
  uint64_t done = 0, tokens = 0;
  const auto keep = [&](size_t index, Scores&& scores) {
    tokens += rollouts[index].response_ids.size();
    result.scores[index] = std::move(scores);
    if (progress_) progress_("scores", ++done, rollouts.size(), tokens);
  };
  std::vector<size_t> left;  // what is not scored yet
  for (size_t i = 0; i < rollouts.size(); ++i)
    if (auto known = early_ ? early_->take(rollouts[i]) : std::nullopt)
      keep(i, std::move(*known));
    else
      left.push_back(i);
  if (early_) early_->clear();
  if (left.empty()) return result;

  ByteWriter message;
  message.put(uint64_t{left.size()});
  for (const size_t i : left) put(message, rollouts[i]);
  const auto call = crew_.call(duty_, "scoring", message.bytes());
  // A stop request ends no scoring: it is short, and half of it is worth nothing.
  comm::Dealer dealer(crew_.world(), left.size(),
                      {.on_result =
                           [&](size_t index, ByteReader& reader) {
                             Scores scores;
                             get(reader, scores);
                             keep(left[index], std::move(scores));
                           },
                       .on_end =
                           [&](ByteReader& reader) {
                             const auto student = reader.get<double>(), teacher = reader.get<double>();
                             add_seconds(result, student, teacher);
                           }},
                      comm::Dealer::OnStop::goes_on);
  double student_seconds = 0, teacher_seconds = 0;
  assert(!takes_part_ || left.size() == rollouts.size());  // who scores early does not lead
  const auto next_lot = [&] { return takes_part_ ? dealer.take(kLot) : std::vector<size_t>(); };
  for (auto lot = next_lot(); !lot.empty(); lot = next_lot()) {
    Scoring own = own_.score(lot_of(rollouts, lot));
    student_seconds += own.student_seconds;
    teacher_seconds += own.teacher_seconds;
    const std::lock_guard lock(dealer.mutex());
    for (size_t i = 0; i < lot.size(); ++i) keep(lot[i], std::move(own.scores[i]));
  }
  dealer.finish();
  add_seconds(result, student_seconds, teacher_seconds);
  return result;
}

}  // namespace ropd::distill
