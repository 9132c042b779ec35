// Scores of responses that are finished while others are still being sampled, where the ranks that score do not
// sample: the leader passes finished responses on to whoever of them is idle, and keeps what comes back. What is not
// scored when sampling ends is scored as usual (crew_scorer.h). Scores depend on tokens and on the two models
// alone, so when they were made shows nowhere.
#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "comm/world.h"
#include "distill/local_scorer.h"

namespace ropd::distill {

// The leader's side. begin(), end(), take() and clear() by one thread, offer() by any.
class EarlyScores {
 public:
  // Ranks first_scorer .. size - 1 score; the world must outlive it.
  EarlyScores(comm::World& world, int first_scorer) : world_(world), first_scorer_(first_scorer) {}
  ~EarlyScores();
  EarlyScores(const EarlyScores&) = delete;
  EarlyScores& operator=(const EarlyScores&) = delete;

  // From here until end() the ranks that score are in serve_early_scores().
  void begin();
  // `sampled`: the student's side, where it was taken while sampling; may be nullptr, then for all.
  void offer(const Rollout& rollout, const Scores* sampled = nullptr);
  // Sends them home when they have scored what they have; fails where one of them did.
  void end();

  // The scores of these tokens, if they were made; once.
  std::optional<Scores> take(const Rollout& rollout);
  void clear() { known_.clear(); }
  size_t num_known() const;

 private:
  using Tokens = std::pair<std::vector<Token>, std::vector<Token>>;  // prompt, response

  struct Offer {
    Rollout rollout;
    std::optional<Scores> sampled;
    uint64_t tokens() const { return rollout.prompt_ids.size() + rollout.response_ids.size(); }
  };
  struct Waiting {  // a rank that wants a lot
    int rank = 0;
    std::optional<uint64_t> tokens = {};  // and no less: a pass through a streamed model
  };

  comm::World& world_;
  const int first_scorer_;
  mutable std::mutex mutex_;  // of what follows, and of sending lots
  std::deque<Offer> open_;
  uint64_t open_tokens_ = 0;
  std::map<int, std::vector<Offer>> given_;  // by rank
  std::vector<Waiting> idle_;
  bool is_closed_ = false;
  std::multimap<Tokens, Scores> known_;
  std::exception_ptr failure_;
  std::thread thread_;

  void serve();
  void keep(int rank, ByteReader& results);
  bool has_enough(const Waiting& waiting) const;
  void answer(const Waiting& waiting);
};

// Another rank's side, while the leader samples with the rest.
void serve_early_scores(comm::World& world, LocalScorer& scorer);

}  // namespace ropd::distill
