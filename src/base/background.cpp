#include "base/background.h"

#include <system_error>
#include <utility>

#include "base/one_thread.h"

namespace ropd {

Background::~Background() {
  if (thread_.joinable()) thread_.join();
}

void Background::begin(std::function<void()> work) {
  wait();
  const auto run = [this, work = std::move(work)] {
    const OneThread here;
    try {
      work();
    } catch (...) {
      failure_ = std::current_exception();
    }
  };
  try {
    thread_ = std::thread(run);
  } catch (const std::system_error&) {
    run();
  }
}

void Background::wait() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace ropd
