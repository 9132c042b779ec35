// How long the program has worked with several threads. What is left of its time has only one thread with
// something to do: the serial share, which decides how many cores are worth having.
#pragma once
#include <chrono>

namespace ropd {

// Wall seconds inside of parallel work with more than one worker (base/threads.h) since the program began.
// Any thread may ask; work that is under way does not count yet.
double shared_seconds();

// Adds its life to shared_seconds(); one at a time.
class SharedTime {
 public:
  SharedTime() = default;
  SharedTime(const SharedTime&) = delete;
  SharedTime& operator=(const SharedTime&) = delete;
  ~SharedTime();

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Wall seconds since it was made or last asked in which only one thread had work. Not inside of parallel work.
class OneThreadWatch {
 public:
  double take_seconds();

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double shared_ = shared_seconds();
};

}  // namespace ropd
