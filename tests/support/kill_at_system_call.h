// Runs an action in child processes and kills the n-th child when it enters its n-th system call, until one
// comes to its end. What is on the disk between two system calls is all that a crash of the program can
// leave.
#pragma once
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

namespace ropd::test {

// True when the child was killed at system call `call` (from 1), false when it ended before. The child must
// end with exit code 0.
inline bool run_until_system_call(const std::function<void()>& action, int call) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
    raise(SIGSTOP);
    try {
      action();
    } catch (const std::exception&) {
      _exit(4);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) throw std::runtime_error("cannot trace a child process here");
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  bool is_entry = true;
  for (int entered = 0;;) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) {
      if (WEXITSTATUS(status) != 0) throw std::runtime_error("the action failed");
      return false;
    }
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    if (is_entry && ++entered == call) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return true;
    }
    is_entry = !is_entry;
  }
}

// Calls prepare(), the action killed at system call n, check(n), for n = 1, 2, ... The last check sees the
// whole action. Gives the number of system calls at which it was killed.
inline int kill_at_every_system_call(const std::function<void()>& prepare,
                                     const std::function<void()>& action,
                                     const std::function<void(int call)>& check) {
  for (int call = 1;; ++call) {
    prepare();
    const bool was_killed = run_until_system_call(action, call);
    check(call);
    if (!was_killed) return call - 1;
  }
}

}  // namespace ropd::test
