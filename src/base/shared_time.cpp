#include "base/shared_time.h"

#include <atomic>
#include <utility>

namespace ropd {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<Clock::rep>& shared_ticks() {
  static std::atomic<Clock::rep> ticks = 0;
  return ticks;
}

}  // namespace

double shared_seconds() {
  return std::chrono::duration<double>(Clock::duration(shared_ticks().load(std::memory_order_relaxed)))
      .count();
}

SharedTime::~SharedTime() {
  shared_ticks().fetch_add((Clock::now() - begin_).count(), std::memory_order_relaxed);
}

double OneThreadWatch::take_seconds() {
  const auto begin = std::exchange(begin_, Clock::now());
  const double shared = std::exchange(shared_, shared_seconds());
  return std::chrono::duration<double>(begin_ - begin).count() - (shared_ - shared);
}

}  // namespace ropd
