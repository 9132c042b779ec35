#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/one_thread.h"
#include "base/shared_time.h"

namespace ropd {
namespace {

// Operations that are worth waking a thread for (about 30 us), and where its core is another program's, too.
constexpr int64_t kWorthWaking = int64_t{1} << 17, kWorthWakingInCrowd = int64_t{1} << 20;

// Through this workers get into a piece of work: which one, how many have entered, how many more may. One
// number, so that all of it changes at once.
class Gate {
 public:
  explicit Gate(uint64_t bits = 0) : bits_(bits) {}
  static Gate open(uint32_t number, size_t places) { return Gate(uint64_t{number} << 32 | places); }
  uint32_t number() const { return static_cast<uint32_t>(bits_ >> 32); }
  uint32_t places() const { return bits_ & 0xffff; }
  uint32_t entered() const { return bits_ >> 16 & 0xffff; }
  Gate with_one_more() const { return Gate(bits_ + (1 << 16) - 1); }
  Gate closed() const { return Gate(bits_ & ~uint64_t{0xffff}); }
  uint64_t bits() const { return bits_; }

 private:
  uint64_t bits_;
};

class Workers {
 public:
  void run(size_t count, int64_t operations, void (*call)(const void*, size_t), const void* work) {
    const std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner || count <= 1) {
      const OneThread here;
      return call(work, 0);
    }
    const SharedTime shared;
    count = std::min(count, provide(count - 1) + 1);
    call_ = call;
    work_ = work;
    left_.store(0, std::memory_order_relaxed);
    gate_.store(Gate::open(++number_, count - 1).bits());
    if (sleepers_.load() > 0 && operations >= (patience().is_crowded() ? kWorthWakingInCrowd : kWorthWaking))
      wake(count - 1);
    do_work(0);
    const uint32_t entered = Gate(gate_.fetch_and(~uint64_t{0xffff})).entered();
    const auto all_left = [&] { return left_.load(std::memory_order_acquire) == entered; };
    if (!patience().look(all_left))
      for (uint32_t left; (left = left_.load(std::memory_order_acquire)) != entered;) left_.wait(left);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  std::mutex owner_;  // held while there is work; of the next four
  size_t num_workers_ = 0;
  uint32_t number_ = 0;
  void (*call_)(const void*, size_t) = nullptr;
  const void* work_ = nullptr;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  alignas(64) std::atomic<uint64_t> gate_{0};
  alignas(64) std::atomic<uint32_t> left_{0};      // how many of those who entered are done
  alignas(64) std::atomic<uint32_t> bell_{0};      // changes when sleepers are to wake up
  alignas(64) std::atomic<uint32_t> sleepers_{0};  // and those about to sleep

  // As many workers, if the system allows; fewer do the same work.
  size_t provide(size_t count) {
    for (; num_workers_ < std::min<size_t>(count, 0xffff); ++num_workers_) try {
        std::thread([this] { work_for_ever(); }).detach();
      } catch (const std::system_error&) {
        break;
      }
    return std::min(count, num_workers_);
  }

  void wake(size_t count) {
    bell_.fetch_add(1);
    if (count >= sleepers_.load())
      bell_.notify_all();
    else
      for (; count > 0; --count) bell_.notify_one();
  }

  void do_work(size_t worker) {
    const OneThread here;
    try {
      call_(work_, worker);
    } catch (...) {
      const std::lock_guard lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  [[noreturn]] void work_for_ever() {
    uint32_t last = 0;
    while (true) {
      const Gate gate = enter(last);
      last = gate.number();
      do_work(gate.entered());
      left_.fetch_add(1, std::memory_order_release);
      left_.notify_one();
    }
  }

  // Waits for work behind number `last` and returns the gate with this thread in it.
  Gate enter(uint32_t last) {
    Gate gate;
    const auto is_open = [&] {
      gate = Gate(gate_.load());
      return gate.places() > 0 && gate.number() != last;
    };
    while (true) {
      if (!patience().look(is_open)) {
        sleepers_.fetch_add(1);
        const uint32_t bell = bell_.load();
        if (!is_open()) bell_.wait(bell);  // run() opens the gate first and then looks for sleepers
        sleepers_.fetch_sub(1);
        if (!is_open()) continue;
      }
      uint64_t before = gate.bits();
      if (gate_.compare_exchange_strong(before, gate.with_one_more().bits())) return gate.with_one_more();
    }
  }
};

// Never destroyed: its workers wait in it when the program ends.
Workers& workers() {
  static Workers& of_the_program = *new Workers;
  return of_the_program;
}

size_t cores_of_process() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0)
    return std::max(1u, std::thread::hardware_concurrency());
  return static_cast<size_t>(std::max(1, CPU_COUNT(&cores)));
}

std::atomic<size_t>& thread_limit() {
  static std::atomic<size_t> limit = cores_of_process();
  return limit;
}

}  // namespace

size_t num_threads() { return thread_limit().load(std::memory_order_relaxed); }
void set_num_threads(size_t count) {
  thread_limit().store(std::max<size_t>(count, 1), std::memory_order_relaxed);
}

bool is_in_parallel() { return OneThread::is_here(); }

Patience<std::chrono::steady_clock>& patience() {
  static Patience<std::chrono::steady_clock> of_the_program;
  return of_the_program;
}

void call_on_threads(size_t count, int64_t operations, void (*call)(const void* work, size_t worker),
                     const void* work) {
  if (OneThread::is_here()) return call(work, 0);
  workers().run(std::min(count, num_threads()), operations, call, work);
}

}  // namespace ropd
