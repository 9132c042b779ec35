#include "io/read_speed.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "base/error.h"

namespace ropd::io {

double measure_read_speed(const Path& path, double seconds) {
  constexpr size_t kBytes = size_t{4} << 20, kAlignment = 4096;  // O_DIRECT wants whole sectors
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (descriptor < 0) descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path.string(), ": cannot read: ", std::generic_category().message(errno));
  const std::unique_ptr<void, decltype(&std::free)> buffer(std::aligned_alloc(kAlignment, kBytes),
                                                           &std::free);
  const auto begin = std::chrono::steady_clock::now();
  double elapsed = 0, done = 0;
  int error_number = 0;
  while (elapsed < seconds) {
    const ssize_t got = ::read(descriptor, buffer.get(), kBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error_number = errno;
    if (got <= 0) break;
    done += static_cast<double>(got);
    elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  ::close(descriptor);
  if (error_number != 0)
    fail(path.string(), ": cannot read: ", std::generic_category().message(error_number));
  elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return done / elapsed;
}

}  // namespace ropd::io
