// The threads of the program: whoever calls, and workers that wait for something to do. All parallel work
// (base/parallel.h) goes through run_on_threads().
//
// Nobody waits for a worker that has not come: on a machine with other busy programs a worker may get its
// core late, and by then the others have done its share. And waiting is by evidence: a thread that waits
// looks again and again for a while, which is the fastest where cores are free; but once it has lost its core
// while it looked, another program wants that core, and for some time waiting threads sleep at once, so that
// the share that the system gives us goes into work.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ropd {

// Threads that parallel work may use, the calling one included. At first: the cores that this process may run
// on.
size_t num_threads();
void set_num_threads(size_t count);  // not from inside parallel work

// Whether this thread is inside of run_on_threads(); what it calls then stays on it.
bool is_in_parallel();

// How long a waiting thread looks for what it waits for before it sleeps. Clock: steady, with now(). Any
// thread may call.
template <class Clock>
class Patience {
 public:
  // Looks for is_there() and returns whether it came; false: it is time to sleep.
  template <class IsThere>
  bool look(const IsThere& is_there) {
    if (is_there()) return true;
    const auto begin = Clock::now();
    if (is_crowded(begin)) return false;
    for (auto last = begin; last - begin < kLookFor;) {
      for (int i = 0; i < kLooks; ++i) {
        if (is_there()) return true;
        pause();
      }
      const auto now = Clock::now();
      if (now - last > kLostCore) {  // kLooks take about a microsecond
        crowded_until_.store((now + kBelieved).time_since_epoch().count(), std::memory_order_relaxed);
        return is_there();
      }
      last = now;
    }
    return false;
  }
  // Whether other programs want our cores, by what was seen lately.
  bool is_crowded(typename Clock::time_point now = Clock::now()) const {
    return now.time_since_epoch().count() < crowded_until_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr int kLooks = 16;
  static constexpr std::chrono::microseconds kLookFor{500};   // several times as long as being woken takes
  static constexpr std::chrono::microseconds kLostCore{100};  // no interrupt takes so long
  static constexpr std::chrono::milliseconds kBelieved{50};
  std::atomic<typename Clock::rep> crowded_until_{Clock::time_point::min().time_since_epoch().count()};

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
};

// The one that all threads of the program share.
Patience<std::chrono::steady_clock>& patience();

// Things that several threads have to do before any of them goes on. Not reusable.
class Countdown {
 public:
  explicit Countdown(uint32_t count) : left_(count) {}
  void one_done() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
  }
  void wait() {
    const auto is_over = [&] { return left_.load(std::memory_order_acquire) == 0; };
    if (patience().look(is_over)) return;
    while (const uint32_t left = left_.load(std::memory_order_acquire)) left_.wait(left);
  }

 private:
  std::atomic<uint32_t> left_;
};

// As run_on_threads(), without its template.
void call_on_threads(size_t workers, int64_t operations, void (*call)(const void* work, size_t worker),
                     const void* work);

// Calls work(worker) on this thread (worker 0) and on up to workers - 1 others, once on each at most, and
// returns when all of them have returned. Worker 0 may be the only one: work() has to share out what there is
// to do itself, and to return when nothing is left. `operations`: of all of it, about a quarter of a
// nanosecond each; for little work nobody is woken. The first exception is thrown again at the end. Called
// from parallel work, or while another thread is in here, it stays on its thread.
template <class Work>
void run_on_threads(size_t workers, int64_t operations, const Work& work) {
  call_on_threads(
      workers, operations, [](const void* w, size_t worker) { (*static_cast<const Work*>(w))(worker); },
      &work);
}

}  // namespace ropd
