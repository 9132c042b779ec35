#include "distill/early_scores.h"

#include <algorithm>

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
  idle_.clear();
  is_closed_ = false;
  thread_ = std::thread([this] { serve(); });
}

void EarlyScores::offer(const Rollout& rollout) {
  const std::lock_guard lock(mutex_);
  open_.push_back(rollout);
  if (idle_.empty()) return;
  const int rank = idle_.back();
  idle_.pop_back();
  answer(rank);
}

// The rank's share of what is there: more while scoring is slower than sampling. Nothing: it may go.
void EarlyScores::answer(int rank) {
  auto& lot = given_[rank];
  lot.clear();
  if (!is_closed_) {
    const auto scorers = static_cast<size_t>(world_.size() - first_scorer_);
    for (size_t left = std::max<size_t>(open_.size() / scorers, 1); left > 0 && !open_.empty(); --left) {
      lot.push_back(std::move(open_.front()));
      open_.pop_front();
    }
  }
  ByteWriter message;
  message.put(uint64_t{lot.size()});
  for (const Rollout& rollout : lot) put(message, rollout);
  world_.send(message.bytes(), rank, comm::Tag::early_lot);
}

void EarlyScores::keep(int rank, ByteReader& results) {
  for (const Rollout& rollout : given_[rank]) {
    Scores scores;
    get(results, scores);
    known_.emplace(Tokens(rollout.prompt_ids, rollout.response_ids), std::move(scores));
  }
  given_[rank].clear();
}

void EarlyScores::serve() try {
  for (int left = world_.size() - first_scorer_; left > 0;) {
    const comm::Message message = world_.receive(std::nullopt, comm::Tag::early_result);
    ByteReader reader(message.bytes);
    if (reader.get<Word>() == Word::goodbye) {
      --left;
      continue;
    }
    const std::lock_guard lock(mutex_);
    keep(message.from, reader);
    if (open_.empty() && !is_closed_)
      idle_.push_back(message.from);
    else
      answer(message.from);
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
      for (const int rank : idle_) answer(rank);
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

void serve_early_scores(comm::World& world, Scorer& scorer) {
  ByteWriter results;
  results.put(Word::wants_lot);
  while (true) {
    world.send(results.bytes(), 0, comm::Tag::early_result);
    const comm::Message message = world.receive(0, comm::Tag::early_lot);
    ByteReader reader(message.bytes);
    std::vector<Rollout> rollouts(reader.get<uint64_t>());
    if (rollouts.empty()) break;
    for (Rollout& rollout : rollouts) get(reader, rollout);
    results = ByteWriter();
    results.put(Word::wants_lot);
    for (const Scores& scores : scorer.score(rollouts).scores) put(results, scores);
  }
  world.send(ByteWriter().put(Word::goodbye).bytes(), 0, comm::Tag::early_result);
}

}  // namespace ropd::distill
