// A generator of every rank as one: the leader deals requests out as ranks have room for more, responses come
// back by index. A response depends on its request and the policy alone, so who sampled it shows nowhere.
#pragma once
#include <functional>
#include <string>

#include "comm/crew.h"
#include "rollout/generator.h"

namespace ropd::rollout {

// Ranks that do something else with responses while the others sample them. Without is_one there are none.
struct Bystanders {
  std::function<bool(int rank)> is_one = {};                      // never rank 0
  std::function<bool(const Request& request)> has_interest = {};  // in these requests; else they sample too
  // The leader: before, for every response (from several threads, one at a time), and at the end.
  std::function<void()> begin = {};
  std::function<void(const Rollout& rollout, const Scores* scores)> on_done = {};  // where they are taken
  std::function<void()> end = {};
  std::function<void()> serve = {};  // a bystander, from begin() to end()
};

// On every rank, around that rank's own generator; the others serve it through the crew. Scores are taken where a
// response is sampled, and come with it.
class CrewGenerator final : public Generator {
 public:
  // Both must outlive it.
  CrewGenerator(Generator& own, comm::Crew& crew, Bystanders bystanders = {});

  void replace_weights(const Policy& policy) override;
  uint64_t policy_step() const override { return own_.policy_step(); }
  std::string fingerprint(const Policy& policy) const override { return own_.fingerprint(policy); }
  void check(std::span<const Request> requests) const override { own_.check(requests); }
  RunSummary run(std::span<const Request> requests, const RunHooks& hooks) override;
  bool is_exact(model::Precision scoring) const override { return own_.is_exact(scoring); }
  const EngineConfig& config() const override { return own_.config(); }
  model::Precision precision() const override { return own_.precision(); }
  int64_t vocab_size() const override { return own_.vocab_size(); }
  void release() override;

 private:
  Generator& own_;
  comm::Crew& crew_;
  const Bystanders bystanders_;
  const size_t duty_;

  void serve(ByteReader& call);
  void serve_run(ByteReader& call);
};

}  // namespace ropd::rollout
