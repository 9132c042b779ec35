// Work shared out to the threads (base/threads.h) in chunks or tasks. What a chunk computes does not depend
// on the thread, so neither does any result.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace ropd {

// Below this many elementary operations (a quarter of a nanosecond each) sharing costs more than it saves.
inline constexpr int64_t kWorthThreads = int64_t{1} << 15;
inline constexpr int64_t kMuchWork = std::numeric_limits<int64_t>::max();

// Threads that `count` pieces of so much work are worth; inside of parallel work it is one.
inline size_t num_lanes(size_t count = SIZE_MAX, int64_t work = kMuchWork) {
  return is_in_parallel() || work < kWorthThreads ? 1 : std::min(count, num_threads());
}

// Calls body(i, lane) for i in [0, count), begun in order and taken `at_once` at a time as threads get done:
// cores are not equally fast on a shared machine. `lane` < lanes tells which thread's memory to use.
template <class Body>
void share_out(int64_t count, int64_t at_once, size_t lanes, int64_t work, const Body& body) {
  if (lanes <= 1) {
    for (int64_t i = 0; i < count; ++i) body(i, size_t{0});
    return;
  }
  std::atomic<int64_t> next = 0;
  run_on_threads(lanes, work, [&](size_t lane) {
    for (int64_t i; (i = next.fetch_add(at_once, std::memory_order_relaxed)) < count;)
      for (const int64_t end = std::min(count, i + at_once); i < end; ++i) body(i, lane);
  });
}

// Calls body(begin, end) for the chunks of [0, count); `work` is about the number of elementary operations of
// all of it.
template <class Body>
void parallel_chunks(int64_t count, int64_t chunk, int64_t work, const Body& body) {
  constexpr int64_t kPiecesPerLane = 8;  // enough for an even end
  const int64_t num_chunks = (count + chunk - 1) / chunk;
  const size_t lanes = num_lanes(static_cast<size_t>(num_chunks), work);
  share_out(num_chunks, std::max<int64_t>(1, num_chunks / (kPiecesPerLane * static_cast<int64_t>(lanes + 1))),
            lanes, work, [&](int64_t i, size_t) { body(i * chunk, std::min(count, (i + 1) * chunk)); });
}

// Calls body(task, lane) for the tasks [0, count), each on one thread; kernels inside stay on that thread.
// All tasks are run, whatever happens; then the failure of the first task that failed is thrown.
template <class Body>
void parallel_tasks(size_t count, const Body& body, int64_t work = kMuchWork) {
  std::mutex mutex;  // of the next two
  std::exception_ptr failure;
  size_t failed = count;
  share_out(static_cast<int64_t>(count), 1, num_lanes(count, work), work, [&](int64_t i, size_t lane) {
    const size_t task = static_cast<size_t>(i);
    try {
      body(task, lane);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (task > failed) return;
      failed = task;
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

// Tasks in two steps: prepare(task, slot) in any order, then finish(task, slot), begun in order of the tasks.
// A thread for which finishing is_early(task) prepares another one meanwhile, so that cores that are not
// equally fast do not wait for each other; `slots` is how many tasks may be between their two steps. The
// first exception is thrown again at the end.
template <class Prepare, class IsEarly, class Finish>
void parallel_in_two_steps(size_t count, size_t slots, const Prepare& prepare, const IsEarly& is_early,
                           const Finish& finish) {
  const size_t threads = num_lanes(count);
  if (threads <= 1) {
    for (size_t task = 0; task < count; ++task) {
      prepare(task, size_t{0});
      finish(task, size_t{0});
    }
    return;
  }
  std::mutex mutex;  // of everything below
  std::vector<size_t> slot_of(count), free_slots(slots);
  std::vector<bool> is_prepared(count, false);
  size_t next_prepared = 0, next_finished = 0;
  std::exception_ptr failure;
  for (size_t slot = 0; slot < slots; ++slot) free_slots[slot] = slots - 1 - slot;
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (!failure && next_finished < count) {
      const bool can_finish = is_prepared[next_finished],
                 can_prepare = next_prepared < count && !free_slots.empty();
      if (can_finish && !(can_prepare && is_early(next_finished))) {
        const size_t task = next_finished++;
        lock.unlock();
        finish(task, slot_of[task]);
        lock.lock();
        free_slots.push_back(slot_of[task]);
      } else if (can_prepare) {
        const size_t task = next_prepared++;
        slot_of[task] = free_slots.back();
        free_slots.pop_back();
        lock.unlock();
        prepare(task, slot_of[task]);
        lock.lock();
        is_prepared[task] = true;
      } else {  // another thread prepares what comes next
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      }
    }
  };
  run_on_threads(threads, kMuchWork, [&](size_t) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

// Tasks of parallel_tasks() that add to shared sums one behind the other: a task does its n-th addition when
// the task before it has done its own n-th, so the sums are those of the tasks run in order. All tasks make
// the same number of additions.
class Turn {
 public:
  Turn() = default;  // of a task on its own: never waits
  Turn(const std::atomic<int>* before, std::atomic<int>* mine) : before_(before), mine_(mine) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { pass_on(std::numeric_limits<int>::max()); }  // also after a failure: nobody waits for ever

  template <class Addition>
  void take(const Addition& addition) {
    if (before_) wait();
    addition();
    pass_on(++taken_);
  }

 private:
  const std::atomic<int>* before_ = nullptr;
  std::atomic<int>* mine_ = nullptr;
  int taken_ = 0;

  void wait() const {
    constexpr int kPatience = 100;  // yields, about as long as falling asleep and being woken takes
    int done = before_->load(std::memory_order_acquire);
    for (int i = 0; i < kPatience && done <= taken_; ++i) {
      std::this_thread::yield();
      done = before_->load(std::memory_order_acquire);
    }
    for (; done <= taken_; done = before_->load(std::memory_order_acquire))
      before_->wait(done, std::memory_order_acquire);
  }
  void pass_on(int turns) {
    if (!mine_) return;
    mine_->store(turns, std::memory_order_release);
    mine_->notify_one();
  }
};

}  // namespace ropd
