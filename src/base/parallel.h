// Work shared out to the threads (base/threads.h) in chunks or tasks. What a chunk computes does not depend
// on the thread, so neither does any result.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>

#include "base/threads.h"

namespace ropd {

// Below this many elementary operations (a quarter of a nanosecond each) sharing costs more than it saves.
inline constexpr int64_t kWorthThreads = int64_t{1} << 15;
inline constexpr int64_t kMuchWork = std::numeric_limits<int64_t>::max();

// Threads that `count` pieces of so much work are worth; inside of parallel work it is one.
inline size_t num_workers(size_t count = SIZE_MAX, int64_t work = kMuchWork) {
  return is_in_parallel() || work < kWorthThreads ? 1 : std::min(count, num_threads());
}

// Pieces [0, count) dealt out to workers in runs: each takes its own from the front, then what others have left from
// their backs. So what a worker takes next is mostly the neighbour of what it has, and all of them end together.
class Runs {
 public:
  Runs(int64_t count, size_t workers) : size_(std::min(workers, kMost)) {
    for (size_t i = 0; i < size_; ++i)
      runs_[i].left.store(
          between(static_cast<uint64_t>(count) * i / size_, static_cast<uint64_t>(count) * (i + 1) / size_),
          std::memory_order_relaxed);
  }
  struct Taken {
    int64_t index = -1;  // -1: none is left
    int64_t next = -1;   // what this worker will take behind it, if nobody else does; -1: not known
  };
  Taken take(size_t worker) {
    for (size_t i = 0; i < size_; ++i) {
      std::atomic<uint64_t>& run = runs_[(worker + i) % size_].left;
      uint64_t left = run.load(std::memory_order_relaxed);
      for (uint64_t begin; (begin = left >> 32) < (left & kEnd);) {
        const uint64_t end = left & kEnd;
        const bool is_only = begin + 1 == end, is_own = i == 0;
        if (!run.compare_exchange_weak(left, is_own ? between(begin + 1, end) : between(begin, end - 1),
                                       std::memory_order_relaxed))
          continue;
        const int64_t index = static_cast<int64_t>(is_own ? begin : end - 1);
        return {index, is_only ? -1 : is_own ? index + 1 : index - 1};
      }
    }
    return {};
  }

 private:
  static constexpr size_t kMost = 64;  // more workers share them
  static constexpr uint64_t kEnd = 0xffffffff;
  struct alignas(64) Run {
    std::atomic<uint64_t> left;  // begin and end
  };
  const size_t size_;
  Run runs_[kMost];
  static uint64_t between(uint64_t begin, uint64_t end) { return begin << 32 | end; }
};

// Calls body(i, worker) for i in [0, count), begun in order and taken `at_once` at a time as threads get done:
// cores are not equally fast on a shared machine. `worker` < workers tells which thread's memory to use.
template <class Body>
void share_out(int64_t count, int64_t at_once, size_t workers, int64_t work, const Body& body) {
  if (workers <= 1) {
    for (int64_t i = 0; i < count; ++i) body(i, size_t{0});
    return;
  }
  std::atomic<int64_t> next = 0;
  run_on_threads(workers, work, [&](size_t worker) {
    for (int64_t i; (i = next.fetch_add(at_once, std::memory_order_relaxed)) < count;)
      for (const int64_t end = std::min(count, i + at_once); i < end; ++i) body(i, worker);
  });
}

// Calls body(begin, end) for the chunks of [0, count); `work` is about the number of elementary operations of
// all of it.
template <class Body>
void parallel_chunks(int64_t count, int64_t chunk, int64_t work, const Body& body) {
  constexpr int64_t kPiecesPerWorker = 8;  // enough for an even end
  const int64_t num_chunks = (count + chunk - 1) / chunk;
  const size_t workers = num_workers(static_cast<size_t>(num_chunks), work);
  share_out(num_chunks,
            std::max<int64_t>(1, num_chunks / (kPiecesPerWorker * static_cast<int64_t>(workers + 1))),
            workers, work, [&](int64_t i, size_t) { body(i * chunk, std::min(count, (i + 1) * chunk)); });
}

// Calls body(task, worker) for the tasks [0, count), each on one thread; kernels inside stay on that thread.
// All tasks are run, whatever happens; then the failure of the first task that failed is thrown.
template <class Body>
void parallel_tasks(size_t count, const Body& body, int64_t work = kMuchWork) {
  std::mutex mutex;  // of the next two
  std::exception_ptr failure;
  size_t failed = count;
  share_out(static_cast<int64_t>(count), 1, num_workers(count, work), work, [&](int64_t i, size_t worker) {
    const size_t task = static_cast<size_t>(i);
    try {
      body(task, worker);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (task > failed) return;
      failed = task;
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ropd
