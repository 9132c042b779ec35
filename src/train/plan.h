// What a run will need, before anything is loaded: budgets (C, U, minibatches), memory by part, disk, and
// time from a short measurement. Needs only the config.json of both models.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/model_config.h"
#include "train/train_config.h"

namespace ropd::train {

// An iteration has phases that follow each other. What only one of them needs is given back when it ends
// (Trainer, RolloutSupply), so the run needs what it always holds and the largest phase.
enum class Phase { always, sampling, student_scoring, teacher_scoring, updates };
std::string phase_name(Phase phase);

struct MemoryItem {
  std::string name;
  uint64_t bytes = 0;
  std::string setting;  // what would make it smaller; empty = nothing
  Phase phase = Phase::always;
};

struct Plan {
  // budgets
  uint64_t iterations = 0, consumed = 0, steps = 0;
  std::vector<uint64_t> minibatches;  // of one iteration
  std::string curriculum;
  // memory
  std::vector<MemoryItem> memory;  // in order of phases
  Phase peak = Phase::always;      // the phase that needs most
  uint64_t memory_bytes = 0;       // in that phase, with what is always held
  uint64_t available_bytes = 0;
  uint64_t phase_bytes(Phase phase) const;  // with what is always held
  // disk
  uint64_t checkpoint_bytes = 0, disk_bytes = 0, free_disk_bytes = 0;
  // time: for responses of `assumed_length` tokens at `flops` a second, measured here
  double flops = 0;
  double assumed_length = 0;
  double seconds_per_iteration = 0;
  uint64_t student_parameters = 0, teacher_parameters = 0;
  // ranks: memory above is each one's, time that of all together over a network of 10 Gbit/s
  int ranks = 1;
  uint64_t step_bytes = 0;  // that a rank sends for each optimization step
};

// Bytes a second of a network by its name in Gbit/s.
constexpr double network_bytes(double gigabits) { return gigabits * 1e9 / 8; }

// Floating-point operations a second of a large f32 product, measured for a fraction of a second.
double measure_flops();

// Reads config.json of both models; weights are not touched. `flops` from measure_flops(), of each rank.
Plan make_plan(const TrainConfig& config, double flops, int ranks = 1);

// Fails with the numbers and the setting that would help when memory or disk cannot suffice.
void check_plan(const Plan& plan);

std::string plan_text(const Plan& plan);

}  // namespace ropd::train
