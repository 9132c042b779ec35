// A curriculum: a list of stages, each with a source of rollouts and an end (method.md section 6).
//   R-OPD         [current until trigger, initial]
//   fixed R40F20  [current x 10, initial]
// The trigger (trigger.h) is set at an iteration tau = k; the next stage begins at k + 1 and the trigger is
// never reversed. Iterations count only inside the stage that ends by the trigger; gradients are also
// observed in earlier current-policy iterations, so that this stage's first one has something to compare
// with.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "curriculum/mixture.h"
#include "curriculum/trigger.h"
#include "records/metrics.h"
#include "records/source.h"

namespace ropd::curriculum {

struct Stage {
  Source source;
  std::optional<uint64_t> iterations;  // ends after so many
  bool until_trigger = false;          // ends by the trigger; neither: lasts to the end of the run
  Ratio ratio_to = {};                 // of a mix: reached in its last iteration; empty: its ratio stays
  std::string where = {};              // run.yaml:12, in front of errors
};

// The source of a stage's iteration (from 0) when it lasts for `length` iterations.
Source source_in_stage(const Stage& stage, uint64_t iteration, uint64_t length);

// Steps at which a recent bank has to be frozen, ascending.
std::vector<uint64_t> freeze_steps(const std::vector<Stage>& stages);

struct CurriculumSettings {
  uint64_t total_iterations = 15;
  uint64_t steps_per_iteration = 4;  // a recent bank can be frozen only between iterations
  uint64_t first_step = 0;           // optimization steps before iteration 1, in a continuation
  bool watch_always =
      false;  // record D and V in every current-policy iteration of a run, trigger stage or not
};

// A trigger beside the one that decides: where it would have been set is recorded and changes nothing. Every
// current-policy iteration counts for it.
struct WatchedTrigger {
  std::string name;
  std::unique_ptr<Trigger> trigger;
  std::optional<uint64_t> tau = {};
};

struct WatchedState {
  Json trigger = Json::object();
  std::optional<uint64_t> tau;

  bool operator==(const WatchedState&) const = default;
};

// Where a run stands; saved in state.json.
struct CurriculumState {
  uint64_t closed_iterations = 0;
  std::vector<uint64_t> stage_begins = {1};  // first iteration of each stage entered so far
  std::optional<uint64_t> tau;
  Json trigger = Json::object();           // what the trigger itself keeps
  std::vector<WatchedState> watched = {};  // in the order of the configuration

  bool operator==(const CurriculumState&) const = default;
};

// Not thread-safe. Everything but the state is constant after construction.
class Curriculum {
 public:
  // Fails with the number of the stage (from 1) when the list cannot be run to the end, whatever the trigger
  // does.
  Curriculum(std::vector<Stage> stages, const CurriculumSettings& settings, std::unique_ptr<Trigger> trigger,
             std::vector<WatchedTrigger> watched = {});

  // The source of an iteration that was closed already or is the next one.
  Source source_of(uint64_t iteration) const;
  uint32_t stage_of(uint64_t iteration) const;

  // Are the gradients of the next iteration to be observed?
  bool is_watching() const;
  // Will gradients of any iteration of this run be? If not, their statistics need no memory.
  bool can_watch() const;

  // Ends the next iteration: shows it to the triggers, may set tau and move to the next stage. What is told of
  // an iteration on stored rollouts is ignored. The record carries tau in every iteration from tau on.
  TriggerRecord close_iteration(const Evidence& evidence);

  bool is_done() const { return closed_iterations_ >= settings_.total_iterations; }
  uint64_t closed_iterations() const { return closed_iterations_; }
  std::optional<uint64_t> tau() const { return tau_; }
  CurriculumState state() const;
  // Fails when the state cannot belong to this list of stages.
  void restore(const CurriculumState& state);

  const std::vector<Stage>& stages() const { return stages_; }
  const CurriculumSettings& settings() const { return settings_; }
  std::vector<uint64_t> freeze_steps() const { return curriculum::freeze_steps(stages_); }
  bool uses_initial_bank() const;
  // "current until trigger, then initial"
  std::string describe() const;

 private:
  std::vector<Stage> stages_;
  CurriculumSettings settings_;
  std::unique_ptr<Trigger> trigger_;
  std::vector<WatchedTrigger> watched_;
  uint64_t closed_iterations_ = 0;
  std::vector<uint64_t> stage_begins_ = {1};
  std::optional<uint64_t> tau_;
  uint32_t next_stage() const { return stage_of(closed_iterations_ + 1); }
  bool watched_need_gradients() const;
  bool is_current() const;  // the next iteration samples from the current student alone
  bool is_judged() const;   // the next iteration, by the trigger that decides
};

}  // namespace ropd::curriculum
