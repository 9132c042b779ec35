#include "rollout/local_generator.h"

#include <cassert>

#include "base/memory_info.h"
#include "rollout/fingerprint.h"

namespace ropd::rollout {

LocalGenerator::LocalGenerator(FindWeights find, model::Precision precision, EngineConfig config,
                               bool keeps_memory, std::function<void()> on_release)
    : find_(std::move(find)),
      precision_(precision),
      config_(std::move(config)),
      keeps_memory_(keeps_memory),
      on_release_(std::move(on_release)),
      vocab_size_(find_({}).config.vocab_size) {}

LocalGenerator::LocalGenerator(const model::Weights& weights, model::Precision precision, EngineConfig config,
                               uint64_t policy_step)
    : LocalGenerator([weights](const Policy&) { return weights; }, precision, std::move(config),
                     /*keeps_memory=*/true) {
  replace_weights({.step = policy_step});
}

const Engine& LocalGenerator::engine() const {
  assert(engine_ && "replace_weights() comes first");
  return *engine_;
}

void LocalGenerator::replace_weights(const Policy& policy) {
  if (!keeps_memory_) engine_.reset();  // so that old and new weights are never both there
  const model::Weights weights = find_(policy);
  if (engine_)
    engine_->replace_weights(weights, policy.step);
  else
    engine_.emplace(weights, precision_, config_, policy.step);
}

std::string LocalGenerator::fingerprint(const Policy& policy) const {
  return weights_fingerprint(find_(policy));
}

RunSummary LocalGenerator::run(std::span<const Request> requests, const RunHooks& hooks) {
  (void)engine();
  return engine_->run(requests, hooks);
}

void LocalGenerator::release() {
  if (on_release_) on_release_();
  if (keeps_memory_ || !engine_) return;
  engine_.reset();
  return_freed_memory();
}

}  // namespace ropd::rollout
