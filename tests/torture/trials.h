// What is done to a command (scenarios.h) and what must hold afterwards:
//   - it never ends by a signal of its own, never hangs, and its exit code is 0, 1 with one line on stderr, or
//     3 where it was asked to stop
//   - the command that goes on succeeds and ends with the results of a run that nothing disturbed; a damaged
//     file may be refused instead, never used in silence
// Whatever does not hold is printed with the command that shows it again.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "torture/scenarios.h"
#include "torture/traced_program.h"

namespace ropd::torture {

enum class Kind { kills, cuts, errors, stops, damages, signals, crowds };
inline constexpr Kind kKinds[] = {Kind::kills,   Kind::cuts,    Kind::errors, Kind::stops,
                                  Kind::damages, Kind::signals, Kind::crowds};
const char* name_of(Kind kind);

// Of what a failed command wrote: one line, and the last, says what failed; warnings may come before it.
bool ends_with_one_clear_line(const std::string& err);

struct TrialOptions {
  std::string program, keep;  // keep: a folder for what a violation began with; empty: none
  uint64_t seed = 1;
  std::chrono::steady_clock::time_point end;  // no new trial afterwards
};

struct Counts {
  uint64_t done = 0;      // trials
  uint64_t possible = 0;  // of a kind that can be enumerated; 0 otherwise
  uint64_t refused = 0;   // damages and errors that ended with exit code 1
  uint64_t killed = 0;    // signals that were SIGKILL and met the program alive
  uint64_t violations = 0;
};

// All trials on one scenario. Not thread-safe; the scenario must outlive it.
class Trials {
 public:
  // Runs the command once undisturbed: its results and its calls.
  Trials(const Scenario& scenario, const TrialOptions& options);

  // Trial number `index` (from 0) of a kind; false when there is none any more. Where trials are enumerated
  // the order spreads them over the whole command, so that a beginning of it is a fair sample.
  bool run(Kind kind, uint64_t index);
  const std::map<Kind, Counts>& counts() const { return counts_; }
  uint64_t num_calls() const { return num_calls_; }

 private:
  const Scenario& scenario_;
  const TrialOptions& options_;
  Tree expected_, expected_with_records_;  // the results
  uint64_t num_calls_ = 0;
  double seconds_ = 0;  // of the undisturbed command
  Disk start_disk_;
  std::vector<std::pair<uint64_t, Change>> changes_;  // with the number of its call
  Tree middle_;                                       // killed half-way
  std::map<std::string, std::string> seen_cuts_;      // hash of what a cut left -> what came of it
  std::map<Kind, Counts> counts_;
  std::string trial_;  // the one that runs: how to repeat it

  uint64_t spread(uint64_t index, uint64_t count) const;
  ProgramEnd run_command(const Command& command) const;
  void reset(const Tree& tree) const;
  void violate(const std::string& text, const Tree& began_with);
  std::string complaint(const ProgramEnd& end) const;
  std::string wrong_result(bool with_records = true) const;
  std::string wrong_result_but_for(const Tree& damaged) const;
  std::string failure_to_go_on() const;
  void kill_before_call(uint64_t call);
  bool cut_power(uint64_t index);
  bool fail_call(uint64_t index);
  void stop_at_call(uint64_t call);
  void damage_one(uint64_t index);
  void signal_at_random(uint64_t index);
  void crowd(uint64_t index);
};

}  // namespace ropd::torture
