// Crashes and failing disks, by tracing a child process.
// Killing: an action runs in child processes, the n-th child is killed when it enters its n-th system call,
// until one comes to its end. What is on the disk between two system calls is all that a crash of the program
// can leave. Failing: one system call of the action is not done and reports an error instead (x86-64).
#pragma once
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>

namespace ropd::test {

// True when the child was killed at system call `call` (from 1) of all its threads, false when it ended before.
// The child must end with exit code 0.
inline bool run_until_system_call(const std::function<void()>& action, int call) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    if (setpgid(0, 0) != 0 || ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
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
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
  ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  std::set<pid_t> inside;  // threads in a system call
  for (int entered = 0;;) {
    const pid_t thread = waitpid(-child, &status, __WALL);  // its group
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      inside.erase(thread);
      if (thread != child) continue;
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("the action failed");
      return false;
    }
    // A new thread begins with SIGSTOP; other events carry SIGTRAP. All else is the program's own.
    const int signal = WSTOPSIG(status);
    const bool is_call = signal == (SIGTRAP | 0x80);
    if (is_call && inside.insert(thread).second) {
      if (++entered == call) break;
    } else if (is_call) {
      inside.erase(thread);
    }
    const bool is_ours = is_call || signal == SIGSTOP || signal == SIGTRAP;
    ptrace(PTRACE_SYSCALL, thread, nullptr, is_ours ? 0 : signal);
  }
  kill(child, SIGKILL);
  while (waitpid(-child, &status, __WALL) > 0) {
  }
  return true;
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

// The text of the exception that the action throws when its `occurrence`-th (from 1) call of `system_call`
// fails with `error_number`; empty when it throws none.
inline std::string error_when_system_call_fails(const std::function<void()>& action, long system_call,
                                                int occurrence, int error_number) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
    raise(SIGSTOP);
    std::string text;
    try {
      action();
    } catch (const std::exception& error) {
      text = error.what();
    }
    const bool is_told = text.empty() || write(ends[1], text.data(), text.size()) > 0;
    _exit(is_told ? 0 : 4);
  }
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) throw std::runtime_error("cannot trace a child process here");
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  bool is_entry = true, fails_now = false;
  for (int seen = 0; !WIFEXITED(status) && !WIFSIGNALED(status);) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    const long number = ptrace(PTRACE_PEEKUSER, child, offsetof(user_regs_struct, orig_rax), nullptr);
    if (is_entry && number == system_call && ++seen == occurrence) {
      fails_now = true;
      ptrace(PTRACE_POKEUSER, child, offsetof(user_regs_struct, orig_rax),
             -1L);  // no such call: nothing is done
    } else if (!is_entry && fails_now) {
      fails_now = false;
      ptrace(PTRACE_POKEUSER, child, offsetof(user_regs_struct, rax), static_cast<long>(-error_number));
    }
    is_entry = !is_entry;
  }
  char text[4096];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || size < 0)
    throw std::runtime_error("the child failed");
  return std::string(text, static_cast<size_t>(size));
}

}  // namespace ropd::test
