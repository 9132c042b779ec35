// The rollout engine of this process as a Generator.
#pragma once
#include <functional>
#include <optional>

#include "rollout/generator.h"

namespace ropd::rollout {

// Views of a policy's weights in this process, valid until they are changed.
using FindWeights = std::function<model::Weights(const Policy& policy)>;

class LocalGenerator final : public Generator {
 public:
  // Weights that change: the engine packs what `find` gives at each replace_weights(), all of one shape. With
  // keeps_memory the packed copy stays between rounds; a large one is better given back. on_release gives
  // back what lies behind `find`.
  LocalGenerator(FindWeights find, model::Precision precision, EngineConfig config, bool keeps_memory,
                 std::function<void()> on_release = {});
  // One model for good, ready to run.
  LocalGenerator(const model::Weights& weights, model::Precision precision, EngineConfig config,
                 uint64_t policy_step = 0);

  void replace_weights(const Policy& policy) override;
  uint64_t policy_step() const override { return engine().policy_step(); }
  std::string fingerprint(const Policy& policy) const override;
  void check(std::span<const Request> requests) const override { engine().check(requests); }
  RunSummary run(std::span<const Request> requests, const RunHooks& hooks) override;
  bool is_exact(model::Precision scoring) const override { return scoring == precision_; }
  const EngineConfig& config() const override { return config_; }
  model::Precision precision() const override { return precision_; }
  int64_t vocab_size() const override { return vocab_size_; }
  void release() override;

 private:
  const FindWeights find_;
  const model::Precision precision_;
  const EngineConfig config_;
  const bool keeps_memory_;
  const std::function<void()> on_release_;
  const int64_t vocab_size_;
  std::optional<Engine> engine_;

  const Engine& engine() const;
};

}  // namespace ropd::rollout
