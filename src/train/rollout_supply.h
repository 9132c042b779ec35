// Where an iteration gets its rollouts: sampled now from the current student, or read from a bank (method.md
// section 6). Every response is on disk before it is trained on, and a rollout of unexpected weights is
// refused.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "curriculum/bank_cursor.h"
#include "distill/scoring.h"
#include "io/run_directory.h"
#include "records/source.h"
#include "rollout/bank.h"
#include "train/model_pair.h"
#include "train/queries.h"
#include "train/run_state.h"

namespace ropd::train {

struct SuppliedRollouts {
  std::vector<Rollout> rollouts;
  std::vector<uint32_t> source;  // [rollouts] part of a mixture, else 0
  // [rollouts] the student's scores, taken while sampling; empty where a pass of its own is needed, because
  // the rollouts are not all new, or sampling and training differ in precision.
  std::vector<Scores> scores;
  bool is_complete = true;  // false: a stop request came first; what is finished is kept on disk
  double sampling_seconds = 0;
  double packing_seconds = 0;  // new weights for the engine, those of banks made now included
  uint64_t sampled_tokens = 0;
};

class RolloutSupply {
 public:
  // releases_engine: packed weights are kept only while something is sampled.
  RolloutSupply(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
                const QuerySet& queries, bool releases_engine = false);

  // The rollouts of an iteration. `student` are the weights after `state.step` optimization steps. Advances
  // the cursors and counters of `state` when complete.
  SuppliedRollouts take(const Source& source, uint64_t iteration, const model::Weights& student,
                        RunState& state);

  // Makes a bank that later iterations need: of the initial student (weights of config.student), or frozen
  // from `student` now. False after a stop request.
  bool make_initial_bank();
  bool freeze_recent_bank(const model::Weights& student, uint64_t step);

 private:
  const TrainConfig& config_;
  const io::RunDirectory& directory_;
  const ModelPair& models_;
  const QuerySet& queries_;
  const bool releases_engine_;
  double packing_seconds_ = 0;  // since the last take()
  std::unique_ptr<rollout::Engine> engine_;
  bool is_initial_bank_checked_ = false;
  std::map<std::string, std::vector<Rollout>> banks_;  // by source_name

  rollout::Engine& engine_with(const model::Weights& weights, uint64_t step);
  rollout::EngineConfig engine_config() const;
  rollout::BankOptions bank_options(const std::string& stage) const;
  void check_initial_bank() const;
  bool make_bank(const Path& path, const model::Weights& weights, uint64_t step, const std::string& part,
                 const std::string& model);
  bool scores_while_sampling() const;
  SuppliedRollouts sample(uint64_t iteration, uint64_t count, const model::Weights& student, RunState& state);
  std::vector<Rollout> from_bank(const Source& source, uint64_t count, RunState& state);
};

}  // namespace ropd::train
