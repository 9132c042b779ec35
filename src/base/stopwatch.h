// Seconds since it was made, and the time of a stage added where a record keeps it.
#pragma once
#include <chrono>
#include <utility>

namespace ropd {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Adds what `stage` takes to `seconds`; gives its result.
template <class Stage>
decltype(auto) timed(double& seconds, Stage&& stage) {
  struct Addition {
    double& to;
    Stopwatch watch = {};
    ~Addition() { to += watch.seconds(); }
  } addition{seconds};
  return std::forward<Stage>(stage)();
}

}  // namespace ropd
