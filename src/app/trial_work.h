// Work of the program on made weights and responses, to be timed: where only shapes count (ropd bench, ropd plan).
#pragma once
#include <memory>
#include <vector>

#include "distill/gradient.h"
#include "model/adapter.h"
#include "model/decode.h"
#include "records/rollout.h"
#include "rollout/decode_rounds.h"

namespace ropd::app {

// `count` responses of `length` tokens behind a prompt of one.
std::vector<Rollout> made_rollouts(int64_t vocab_size, size_t count, size_t length);

// Steps of `count` sequences, a token each, behind a context of made keys and values.
class DecodeTrial {
 public:
  DecodeTrial(const model::Decoder& decoder, const ModelConfig& config, int64_t count, int64_t context);
  void run(int steps);

 private:
  const model::Decoder& decoder_;
  rollout::DecodeRounds rounds_;
  rollout::DecodeRounds::Round round_{.num_steps = 0};
  model::KvCache cache_;
  std::vector<std::vector<int32_t>> pages_;
  std::vector<model::DecodeRows> rows_;
  std::vector<model::DecodeMemory> memories_;  // of workers
};

// The gradient of a minibatch with constant supervision: of all parameters, or of an adapter of rank 16 on a base
// stored in bf16.
class GradientTrial {
 public:
  // Trials of one shard may take turns with the same memory; of several, it holds gradients of a trial's own size.
  GradientTrial(const ModelConfig& config, std::vector<Rollout> batch, size_t num_shards,
                const distill::GradientConfig& gradient_config, bool is_adapter,
                distill::GradientMemory& memory);
  void run();

 private:
  const distill::GradientConfig gradient_config_;
  const std::vector<Rollout> batch_;
  std::vector<distill::Supervision> supervision_;
  std::vector<distill::Shard> shards_;
  std::unique_ptr<model::Parameters> parameters_;  // of all, or
  std::unique_ptr<model::Adapter> adapter_;        // this
  model::Weights base_, weights_;
  std::unique_ptr<model::Gradients> gradients_;
  distill::GradientMemory& memory_;
};

}  // namespace ropd::app
