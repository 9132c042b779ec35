#include "torture/traced_program.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "support/test_data.h"
#include "torture/system_calls.h"

namespace ropd::torture {
namespace {

// Kills a process that goes on for too long.
class Watchdog {
 public:
  Watchdog(pid_t process, std::chrono::seconds limit)
      : thread_([this, process, limit] {
          std::unique_lock lock(mutex_);
          if (condition_.wait_for(lock, limit, [this] { return is_over_; })) return;
          has_bitten_ = true;
          ::kill(process, SIGKILL);
        }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() { end(); }
  // True when it had to kill.
  bool end() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    condition_.notify_all();
    if (thread_.joinable()) thread_.join();
    return has_bitten_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool is_over_ = false;  // guarded by mutex_
  bool has_bitten_ = false;
  std::thread thread_;
};

[[noreturn]] void become(const std::vector<std::string>& command, const Path& out, const Path& err) {
  // What this program ignores its children would ignore too.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  const int out_file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  const int err_file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::dup2(null, 0);
  ::dup2(out_file, 1);
  ::dup2(err_file, 2);
  for (const int descriptor : {null, out_file, err_file})
    if (descriptor > 2) ::close(descriptor);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  ::_exit(127);
}

[[noreturn]] void become_traced(const ProgramRun& run, const std::vector<sock_filter>& filter,
                                const Path& out, const Path& err) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  if (::setpgid(0, 0) != 0 || ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(126);
  ::raise(SIGSTOP);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    ::_exit(126);
  become(run.command, out, err);
}

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// The tracer's side of one run.
class Tracing {
 public:
  Tracing(const ProgramRun& run, const Path& folder, pid_t child, ProgramEnd& end)
      : run_(run), folder_(folder), child_(child), end_(end) {}

  // Until the program has ended; its wait status.
  int follow() {
    for (;;) {
      int status = 0;
      const pid_t thread = ::waitpid(-child_, &status, __WALL);  // its group
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) fail("a traced program was lost: errno ", errno);
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        if (thread == child_) return status;
        std::erase(held_, thread);
        if (open_calls_.erase(thread) > 0) let_next_in();
        continue;
      }
      if (WIFSTOPPED(status)) go_on(thread, status);
    }
  }

 private:
  const ProgramRun& run_;
  const Path& folder_;
  const pid_t child_;
  ProgramEnd& end_;
  std::map<pid_t, FileCall> open_calls_;  // threads inside of a counted call that is followed to its end: one
  std::deque<pid_t> held_;                // threads at the entry of a call while another is in one
  pid_t failing_close_ = 0;               // the thread inside of a close that is to report an error

  void go_on(pid_t thread, int status) {
    const int signal = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP) return at_entry(thread);
    if (signal == (SIGTRAP | 0x80)) return at_exit(thread);
    // A new thread begins with SIGSTOP; other events carry SIGTRAP. All else is the program's own.
    const bool is_ours = event != 0 || signal == SIGSTOP || signal == SIGTRAP;
    const bool is_inside = open_calls_.contains(thread) || thread == failing_close_;
    ::ptrace(is_inside ? PTRACE_SYSCALL : PTRACE_CONT, thread, nullptr, is_ours ? 0 : signal);
  }

  // Calls that change files come one after the other: their order is the order of the changes, and a kill
  // meets none half-way.
  void let_next_in() {
    while (open_calls_.empty() && !held_.empty()) {
      const pid_t thread = held_.front();
      held_.pop_front();
      at_entry(thread);
    }
  }

  void at_entry(pid_t thread) {
    if (!open_calls_.empty()) return held_.push_back(thread);
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
    auto call = file_call(thread, registers, folder_);
    if (!call) {
      ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
      return;
    }
    const uint64_t index = ++end_.num_calls;
    if (run_.before_call) run_.before_call(index);
    if (index == run_.fault.at && meets_fault(thread, registers, *call)) return;
    if (!run_.on_change) {
      ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
      return;
    }
    open_calls_[thread] = std::move(*call);
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, nullptr);
  }

  // True when the call is not done.
  bool meets_fault(pid_t thread, user_regs_struct& registers, const FileCall& call) {
    end_.call = call.name + " " + call.change.path.string();
    end_.met_fault = true;
    switch (run_.fault.kind) {
      case Fault::Kind::kill:
        end_.was_killed = true;
        ::kill(child_, SIGKILL);
        return true;
      case Fault::Kind::error:
        if (call.name == "close") {  // closes whatever it reports
          failing_close_ = thread;
          ::ptrace(PTRACE_SYSCALL, thread, nullptr, nullptr);
          return true;
        }
        registers.orig_rax = static_cast<unsigned long long>(-1);
        registers.rax = static_cast<unsigned long long>(-run_.fault.error_number);
        ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
        ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
        return true;
      case Fault::Kind::signal:
        ::kill(child_, run_.fault.signal);
        return false;
      case Fault::Kind::short_write:
        end_.met_fault = call.can_be_short;
        if (call.can_be_short) {
          registers.rdx /= 2;
          ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
        }
        return false;
    }
    return false;
  }

  void at_exit(pid_t thread) {
    if (thread == failing_close_) {
      failing_close_ = 0;
      ::ptrace(PTRACE_POKEUSER, thread, offsetof(user_regs_struct, rax),
               static_cast<long>(-run_.fault.error_number));
    }
    const auto found = open_calls_.find(thread);
    if (found != open_calls_.end()) {
      const long result = ::ptrace(PTRACE_PEEKUSER, thread, offsetof(user_regs_struct, rax), nullptr);
      if (const auto change = done_change(thread, found->second, result)) run_.on_change(*change);
      open_calls_.erase(found);
    }
    ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
    let_next_in();
  }
};

std::string read_if_there(const Path& path) { return std::filesystem::exists(path) ? read_file(path) : ""; }

}  // namespace

ProgramEnd run_traced(const ProgramRun& run) {
  const test::TemporaryDirectory place;
  const Path out = place / "out", err = place / "err", folder = std::filesystem::canonical(run.folder);
  const auto filter = filter_of_file_changes();
  ProgramEnd end;
  const pid_t child = ::fork();
  if (child < 0) fail("fork failed: errno ", errno);
  if (child == 0) become_traced(run, filter, out, err);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) fail("programs cannot be traced here (ptrace is not allowed)");
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
               PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
  ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
  Watchdog watchdog(child, run.limit);
  end.exit_code = exit_code_of(Tracing(run, folder, child, end).follow());
  end.took_too_long = watchdog.end();
  if (end.exit_code == 126 || end.exit_code == 127) fail(run.command[0], ": cannot be run and traced");
  end.out = read_if_there(out);
  end.err = read_if_there(err);
  return end;
}

StartedProgram::StartedProgram(const std::vector<std::string>& command, const Path& log) : log_(log) {
  std::filesystem::remove(log_.string() + ".out");
  std::filesystem::remove(log_.string() + ".err");
  process_ = ::fork();
  if (process_ < 0) fail("fork failed: errno ", errno);
  if (process_ == 0) become(command, log_.string() + ".out", log_.string() + ".err");
}

StartedProgram::~StartedProgram() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void StartedProgram::signal(int number) const { ::kill(process_, number); }

ProgramEnd StartedProgram::wait(std::chrono::seconds limit) {
  ProgramEnd end;
  Watchdog watchdog(process_, limit);
  int status = 0;
  ::waitpid(process_, &status, 0);
  end.took_too_long = watchdog.end();
  process_ = -1;
  end.exit_code = exit_code_of(status);
  end.out = read_if_there(log_.string() + ".out");
  end.err = read_if_there(log_.string() + ".err");
  return end;
}

}  // namespace ropd::torture
