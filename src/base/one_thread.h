// Keeps what a thread calls on that thread.
#pragma once

namespace ropd {

// While it lives, parallel work (base/threads.h) that this thread calls stays on it: inside of parallel work,
// and for what goes on beside everything else (base/background.h), which is not to take the threads from it.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  static bool is_here();  // whether one lives on this thread

 private:
  const bool before_;
};

}  // namespace ropd
