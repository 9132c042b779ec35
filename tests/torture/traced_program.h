// Runs a program and sees every call with which it changes files below one folder: counts them, kills it
// before one, lets one fail or write only in part, and tells what each has done (disk.h).
// A seccomp filter stops the program (all its threads and children) at such calls and nowhere else, so it
// runs nearly as fast as without. Linux on x86-64.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "torture/disk.h"

namespace ropd::torture {

// What happens at one of the counted calls, from 1; at = 0: nothing.
struct Fault {
  enum class Kind { kill, error, short_write, signal };
  uint64_t at = 0;
  Kind kind = Kind::kill;
  int error_number = 0;  // what the call fails with; it does nothing
  int signal = 0;        // sent right before the call, which is done
};

struct ProgramEnd {
  int exit_code = -1;       // 128 + the signal that ended it
  bool was_killed = false;  // by the fault
  bool took_too_long = false;
  bool met_fault = false;
  uint64_t num_calls = 0;
  std::string call;  // the one that the fault met: its name and path
  std::string out, err;
};

struct ProgramRun {
  std::vector<std::string> command;  // the first is the program
  Path folder;                       // only calls on what lies in it are counted
  Fault fault;
  // Called before call number `index`, and with each change that was done. May be empty.
  std::function<void(uint64_t index)> before_call;
  std::function<void(const Change& change)> on_change;
  std::chrono::seconds limit{600};  // a loaded machine is slow, not hung
};

// Other children of the caller are left alone.
[[nodiscard]] ProgramEnd run_traced(const ProgramRun& run);

// The same without looking at its calls: a started program that can be signalled.
class StartedProgram {
 public:
  StartedProgram(const std::vector<std::string>& command, const Path& log);
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;
  ~StartedProgram();
  void signal(int number) const;
  // Waits for its end, at most so long; afterwards it is killed.
  ProgramEnd wait(std::chrono::seconds limit = std::chrono::seconds(600));

 private:
  Path log_;
  int process_ = -1;
};

}  // namespace ropd::torture
