#include "distill/early_scores.h"

#include <utility>

#include "distill/peer_bytes.h"

namespace ropd::distill {
namespace {

enum class Word : uint8_t { wants_lot, goodbye };  // what a rank that scores says

}  // namespace

// Without end(): the leader failed.
EarlyScores::~EarlyScores() {
  try {
    end();
  } catch (...) {  // the leader's own failure is told
  }
}

void EarlyScores::begin() {
  known_.clear();
  open_.clear();
  open_tokens_ = 0;
  idle_.clear();
  is_closed_ = false;
  thread_ = std::thread([this] { serve(); });
}

bool EarlyScores::has_enough(const Waiting& waiting) const {
  return is_closed_ || (!open_.empty() && open_tokens_ >= waiting.tokens.value_or(0));
}

void EarlyScores::offer(const Rollout& rollout, const Scores* sampled) {
  const std::lock_guard lock(mutex_);
  open_.push_back({rollout, sampled ? std::optional(*sampled) : std::nullopt});
  open_tokens_ += open_.back().tokens();
  if (idle_.empty() || !has_enough(idle_.back())) return;
  const Waiting waiting = idle_.back();
  idle_.pop_back();
  answer(waiting);
}

// The rank's share of what is there, more while scoring is slower than sampling; or a pass. Nothing: it may go.
void EarlyScores::answer(const Waiting& waiting) {
  auto& lot = given_[waiting.rank];
  lot.clear();
  if (!is_closed_) {
    const size_t share = open_.size() / static_cast<size_t>(world_.size() - first_scorer_);
    uint64_t tokens = 0;
    const auto has_room = [&] {
      return waiting.tokens ? tokens + open_.front().tokens() <= *waiting.tokens : lot.size() < share;
    };
    while (!open_.empty() && (lot.empty() || has_room())) {
      tokens += open_.front().tokens();
      lot.push_back(std::move(open_.front()));
      open_.pop_front();
    }
    open_tokens_ -= tokens;
  }
  ByteWriter message;
  const bool is_known = !lot.empty() && lot.front().sampled;
  message.put(uint64_t{lot.size()}).put(is_known);
  for (const Offer& offer : lot) put(message, offer.rollout);
  for (const Offer& offer : lot)
    if (is_known) put_candidates(message, *offer.sampled);
  world_.send(message.bytes(), waiting.rank, comm::Tag::early_lot);
}

void EarlyScores::keep(int rank, ByteReader& results) {
  for (Offer& offer : given_[rank]) {
    Scores scores;
    if (offer.sampled) {
      scores = std::move(*offer.sampled);
      get_teachers_side(results, scores);
    } else {
      get(results, scores);
    }
    known_.emplace(Tokens(std::move(offer.rollout.prompt_ids), std::move(offer.rollout.response_ids)),
                   std::move(scores));
  }
  given_[rank].clear();
}

void EarlyScores::serve() try {
  for (int left = world_.size() - first_scorer_; left > 0;) {
    const comm::Message message =
        world_.receive(std::nullopt, comm::Tag::early_result, comm::Waiting::beside_work);
    ByteReader reader(message.bytes);
    if (reader.get<Word>() == Word::goodbye) {
      --left;
      continue;
    }
    const Waiting waiting{message.from, reader.get<std::optional<uint64_t>>()};
    const std::lock_guard lock(mutex_);
    keep(message.from, reader);
    if (has_enough(waiting))
      answer(waiting);
    else
      idle_.push_back(waiting);
  }
} catch (...) {
  const std::lock_guard lock(mutex_);
  failure_ = std::current_exception();
}

void EarlyScores::end() {
  if (!thread_.joinable()) return;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    open_.clear();
    try {
      for (const Waiting& waiting : idle_) answer(waiting);
    } catch (...) {
      failure = std::current_exception();
    }
    idle_.clear();
  }
  thread_.join();
  if (failure_) failure = std::exchange(failure_, nullptr);
  if (failure) std::rethrow_exception(failure);
}

std::optional<Scores> EarlyScores::take(const Rollout& rollout) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find({rollout.prompt_ids, rollout.response_ids});
  if (found == known_.end()) return std::nullopt;
  Scores scores = std::move(found->second);
  known_.erase(found);
  scores.query_id = rollout.query_id;
  scores.sample = rollout.sample;
  return scores;
}

size_t EarlyScores::num_known() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

void serve_early_scores(comm::World& world, LocalScorer& scorer) {
  const auto pass = scorer.pass_tokens();
  const auto ask_for_more = [&] {
    ByteWriter question;
    question.put(Word::wants_lot).put(pass);
    return question;
  };
  ByteWriter results = ask_for_more();
  std::vector<Rollout> rollouts;
  bool is_known = false;
  scorer.score_lots(
      [&]() -> std::optional<ScoringLot> {
        world.send(results.bytes(), 0, comm::Tag::early_result);
        const comm::Message message = world.receive(0, comm::Tag::early_lot);
        ByteReader reader(message.bytes);
        rollouts.assign(reader.get<uint64_t>(), {});
        reader.get(is_known);
        if (rollouts.empty()) return std::nullopt;
        std::vector<Scores> known(is_known ? rollouts.size() : 0);
        for (Rollout& rollout : rollouts) get(reader, rollout);
        for (Scores& scores : known) get_candidates(reader, scores);
        return ScoringLot{rollouts, std::move(known)};
      },
      [&](Scoring&& scoring) {
        results = ask_for_more();
        for (const Scores& scores : scoring.scores)
          is_known ? put_teachers_side(results, scores) : put(results, scores);
      });
  world.send(ByteWriter().put(Word::goodbye).bytes(), 0, comm::Tag::early_result);
}

}  // namespace ropd::distill
