// A piece of work on a thread of its own beside everything else, one at a time.
#pragma once
#include <exception>
#include <functional>
#include <thread>

namespace ropd {

// Its work stays on one thread (base/one_thread.h). Owned and called by one thread.
class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  // Waits for what was begun; a failure that nobody waited for is lost.
  ~Background();

  // Waits for the one before, whose failure it throws, and returns when `work` has been handed over. Where the
  // system gives no thread it is done here.
  void begin(std::function<void()> work);
  // Until what was begun is done; its failure is thrown, once.
  void wait();

 private:
  std::thread thread_;
  std::exception_ptr failure_;  // of the thread's until it is joined
};

}  // namespace ropd
