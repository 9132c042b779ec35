// What a run will need, before anything is loaded: budgets (C, U, minibatches), memory by part, whether the
// teacher is streamed and what that reads, disk, and time from short measurements. Needs only the config.json
// of both models. What would make a run fit that does not: proposals.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "records/model_config.h"
#include "train/stage_time.h"
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

// What a plan takes for granted of the machine, and of what the student will write.
struct Machine {
  double flops = 1e11;                     // of products: measure_flops()
  std::optional<StageSpeeds> speeds = {};  // measured; nothing = a guess from flops
  double read_bytes_per_second = 0;        // of the teacher's files: measure_teacher_reads(); 0 = not known
  std::optional<uint64_t> memory_bytes = {};  // free; nothing = what is free here
  int ranks = 1;                              // processes, each on such a machine
  std::optional<double> mean_tokens = {};     // of its responses; nothing = a quarter of the longest
};

// What a run changes: every parameter of the student, or those of an adapter beside weights that stay mapped
// in the type they are stored in.
struct Trainable {
  uint64_t parameters = 0;
  bool is_adapter = false;
  uint64_t merged_layer_bytes = 0;  // of an adapter: the largest layer's adapted matrices, as products round
};

// How the teacher is used, and what an iteration reads of it when it is streamed.
struct TeacherPlan {
  uint64_t stored_bytes = 0;
  bool is_streamed = false;
  bool reads_ahead = false;
  uint64_t window_bytes = 0;  // of weights in memory at once
  uint64_t positions = 0;     // of one pass
  uint64_t passes = 0;        // of an iteration
  uint64_t read_bytes = 0;    // likewise
  double read_seconds = 0;    // likewise, at the measured speed; 0 = not known
};

struct Plan {
  // budgets
  uint64_t iterations = 0, consumed = 0, steps = 0;
  std::vector<uint64_t> minibatches;  // of one iteration
  std::string curriculum;
  // memory
  std::vector<MemoryItem> memory;  // in order of phases
  TeacherPlan teacher;
  Phase peak = Phase::always;  // the phase that needs most
  uint64_t memory_bytes = 0;   // in that phase, with what is always held
  uint64_t available_bytes = 0;
  uint64_t phase_bytes(Phase phase) const;  // with what is always held
  // What the moments and the trigger's vectors read and write in scratch files, an update each; 0 = in memory.
  uint64_t optimizer_file_bytes = 0, trigger_file_bytes = 0;
  // disk
  uint64_t scratch_bytes = 0;  // of these files
  uint64_t checkpoint_bytes = 0, disk_bytes = 0, free_disk_bytes = 0;
  // time: for responses of `assumed_length` tokens
  double flops = 0, read_bytes_per_second = 0;
  double assumed_length = 0;
  bool is_time_measured = false;  // or guessed from `flops`
  StageSeconds seconds;           // of an iteration that samples, if any does
  double seconds_per_iteration = 0, bank_seconds = 0;
  uint64_t trained_parameters = 0;  // all of the student's, or an adapter's
  uint64_t student_parameters = 0, teacher_parameters = 0;
  // ranks: memory above is each one's, time that of all together over a network of 10 Gbit/s
  int ranks = 1;
  uint64_t step_bytes = 0;  // that a rank sends for each optimization step
};

// The shapes that a plan is made from, with what is counted from them once.
struct PlannedModels {
  ModelConfig student, teacher;
  uint64_t student_parameters = 0, teacher_parameters = 0;
  uint64_t student_bytes = 0, teacher_bytes = 0;  // as stored
  std::vector<uint64_t> teacher_parts;            // bytes: model/layer_stream.h
  uint64_t steps_before = 0;                      // see below
};
PlannedModels read_shapes(const TrainConfig& config);
Trainable trainable_of(const TrainConfig& config, const PlannedModels& models);

// Optimization steps before the run's first one: those of the checkpoint that it continues. 0 where there is none,
// or none yet (a study plans runs whose beginning is still to be made).
uint64_t steps_before(const TrainConfig& config);

// The nearest folder that is there already: `folder` itself, or where it would be made.
Path existing_folder(const Path& folder);

// Bytes a second of a network by its name in Gbit/s.
constexpr double network_bytes(double gigabits) { return gigabits * 1e9 / 8; }

// Floating-point operations a second of a large f32 product, measured for a fraction of a second.
double measure_flops();

// Bytes a second of the teacher's largest file, past the system's cache where it can be told to; measured for
// a fraction of a second. 0 where there is no such file yet.
double measure_teacher_reads(const TrainConfig& config);

// Tokens of a response that time and disk are planned for: `mean_tokens`, or a quarter of the longest. Fails where no
// responses have such a mean.
double assumed_length(const TrainConfig& config, std::optional<double> mean_tokens);

// Reads config.json of both models; weights are not touched. Fails when the curriculum cannot be.
Plan make_plan(const TrainConfig& config, const Machine& machine);
Plan make_plan(const TrainConfig& config, const Machine& machine, const PlannedModels& models,
               const Trainable& trainable);

// Fails with the numbers when memory or disk cannot suffice. `help`: settings with which it would fit; empty:
// the largest part that has a setting is named.
void check_plan(const Plan& plan, const std::string& help = "");

std::string plan_text(const Plan& plan);

}  // namespace ropd::train
