// So many threads as long as it lives.
#pragma once
#include "base/threads.h"

namespace ropd::test {

class SetThreads {
 public:
  explicit SetThreads(size_t count) : before_(num_threads()) { set_num_threads(count); }
  ~SetThreads() { set_num_threads(before_); }

 private:
  const size_t before_;
};

}  // namespace ropd::test
