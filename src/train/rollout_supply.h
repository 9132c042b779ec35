// Where an iteration gets its rollouts: sampled now from the current student, or read from a bank (method.md
// section 6). Every response is on disk before it is trained on, and a rollout of unexpected weights is
// refused.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/rollout_file.h"
#include "io/run_directory.h"
#include "records/scores.h"
#include "records/source.h"
#include "rollout/bank.h"
#include "train/queries.h"
#include "train/run_state.h"

namespace ropd::train {

struct SuppliedRollouts {
  std::vector<Rollout> rollouts;
  std::vector<uint32_t> source;  // [rollouts] part of a mixture, else 0
  // [rollouts] the student's scores, taken while sampling; empty where a pass of its own is needed, because
  // the rollouts are not all new, or the generator's scores are not those of training's precision.
  std::vector<Scores> scores;
  bool is_complete = true;  // false: a stop request came first; what is finished is kept on disk
  double sampling_seconds = 0;
  double packing_seconds = 0;  // new weights for the generator, those of banks made now included
  uint64_t sampled_tokens = 0;
};

class RolloutSupply {
 public:
  using Decode = std::function<std::string(std::span<const Token>)>;

  // References must outlive the supply. `decode` gives responses their text; may be empty.
  RolloutSupply(const TrainConfig& config, const io::RunDirectory& directory, const QuerySet& queries,
                rollout::Generator& generator, Decode decode);

  // The rollouts of an iteration; the student has made `step` optimization steps. Moves on when complete.
  SuppliedRollouts take(const Source& source, uint64_t iteration, uint64_t step);

  // Makes a bank that later iterations need: of the initial student, or frozen from the current one, which
  // has made `step` steps. False after a stop request.
  bool make_initial_bank();
  bool freeze_recent_bank(uint64_t step);

  const SupplyState& state() const { return state_; }
  void restore(const SupplyState& state) { state_ = state; }
  // What every rollout keeps to.
  const std::vector<Token>& eos_ids() const { return generator_.config().eos_ids; }
  int64_t vocab_size() const { return generator_.vocab_size(); }

 private:
  const TrainConfig& config_;
  const io::RunDirectory& directory_;
  const QuerySet& queries_;
  rollout::Generator& generator_;
  const Decode decode_;
  SupplyState state_;
  double packing_seconds_ = 0;  // since the last take()
  bool is_initial_bank_checked_ = false;
  std::map<std::string, std::vector<Rollout>> banks_;  // by source_name

  void replace_weights(const rollout::Policy& policy);
  rollout::BankOptions bank_options(const std::string& stage) const;
  io::RolloutLimits limits() const;
  std::string model_name(const rollout::Policy& policy) const;
  void check_initial_bank() const;
  std::vector<rollout::Request> bank_requests(const std::string& part) const;
  bool make_bank(const Path& path, const rollout::Policy& policy, const std::string& part);
  std::vector<Rollout> read_bank(const Source& source, const Path& path) const;
  SuppliedRollouts sample(uint64_t iteration, uint64_t step, uint64_t count, SupplyState& state);
  std::string bank_key(const Source& source, SupplyState& state) const;
  std::vector<Rollout> from_bank(const Source& source, uint64_t count, SupplyState& state);
  SuppliedRollouts mix(const Source& source, uint64_t iteration, uint64_t step, SupplyState& state);
};

}  // namespace ropd::train
