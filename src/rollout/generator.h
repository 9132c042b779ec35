// Who generates responses. One of the three seams of training (docs/architecture.md): whoever asks knows
// neither where the weights lie nor who computes. A response depends on the policy, its prompt and its key
// (seed, query, sample) and on nothing else.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "rollout/engine.h"

namespace ropd::rollout {

// Which weights, by name: every generator knows for itself where to find them.
struct Policy {
  bool is_initial = false;  // the student before all training; else the one being trained, as it is now
  uint64_t step = 0;        // optimization steps behind it
};

// Not thread-safe.
class Generator {
 public:
  virtual ~Generator() = default;

  // From now on responses are this policy's, and carry its step.
  virtual void replace_weights(const Policy& policy) = 0;
  virtual uint64_t policy_step() const = 0;
  // Of a policy's weights; needs no replace_weights().
  virtual std::string fingerprint(const Policy& policy) const = 0;

  // Refuses requests that cannot run: empty prompt, foreign ids, no room in context or memory.
  virtual void check(std::span<const Request> requests) const = 0;
  // Checks all requests before anything is sampled; ends early after stop_requested().
  virtual RunSummary run(std::span<const Request> requests, const RunHooks& hooks) = 0;

  // Are its log-probabilities and the scores of RunHooks::on_scores, bit for bit, those of scoring in this
  // precision?
  virtual bool is_exact(model::Precision scoring) const = 0;
  // What determines a response beside policy, prompt and key.
  virtual const EngineConfig& config() const = 0;
  virtual model::Precision precision() const = 0;
  virtual int64_t vocab_size() const = 0;

  // Nothing is asked for until the next replace_weights(): memory may go.
  virtual void release() = 0;
};

}  // namespace ropd::rollout
