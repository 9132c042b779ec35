// Work shared out to the OpenMP threads in chunks. What a chunk computes does not depend on the thread, so
// neither does any result.
#pragma once
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace ropd {

// Below this many elementary operations a parallel region costs more than it saves.
inline constexpr int64_t kWorthThreads = int64_t{1} << 15;

// Calls body(begin, end) for the chunks of [0, count); `work` is about the number of elementary operations of
// all of it.
template <class Body>
void parallel_chunks(int64_t count, int64_t chunk, int64_t work, const Body& body) {
  const int64_t num_chunks = (count + chunk - 1) / chunk;
  const auto run = [&](int64_t i) { body(i * chunk, std::min(count, (i + 1) * chunk)); };
  if (work < kWorthThreads || num_chunks == 1 || omp_in_parallel()) {  // a team of one costs time, too
    for (int64_t i = 0; i < num_chunks; ++i) run(i);
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < num_chunks; ++i) run(i);
}

// Calls body(task, lane) for the tasks [0, count), each on one thread; kernels inside stay on that thread.
// Tasks are begun in order and taken as threads get done: cores are not equally fast on a shared machine.
// `lane` < num_lanes(count) tells which thread's memory to use. The first exception is thrown again at the
// end.
inline size_t num_lanes(size_t count = SIZE_MAX) {
  return omp_in_parallel() ? 1 : std::min(count, static_cast<size_t>(omp_get_max_threads()));
}
template <class Body>
void parallel_tasks(size_t count, const Body& body) {
  const size_t lanes = num_lanes(count);
  if (lanes <= 1) {
    for (size_t task = 0; task < count; ++task) body(task, size_t{0});
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel for schedule(monotonic : dynamic, 1) num_threads(static_cast <int>(lanes))
  for (size_t task = 0; task < count; ++task) {
    try {
      body(task, static_cast<size_t>(omp_get_thread_num()));
    } catch (...) {
#pragma omp critical
      if (!failure) failure = std::current_exception();
    }
  }
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
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }
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
