#include "base/waiting.h"

#include <poll.h>

#include <cerrno>

#include "base/stop.h"
#include "base/system_call.h"

namespace ropd {
namespace {

// A signal may come between the look at its request and the wait, so the wait is no longer than this.
constexpr int kLookMilliseconds = 200;

// False when nothing happened for a while.
bool is_ready(int descriptor, short events, const std::string& name) {
  pollfd asked{.fd = descriptor, .events = events, .revents = 0};
  const int result = ::poll(&asked, 1, kLookMilliseconds);
  if (result < 0 && errno != EINTR) fail(name, ": cannot be waited for: ", system_reason(errno));
  return result > 0;
}

}  // namespace

void wait_for_input(int descriptor, const std::string& name) {
  for (;;) {
    if (stop_requested()) throw Stopped(name + ": stopped before its end was read; nothing was made of it");
    if (is_ready(descriptor, POLLIN, name)) return;
  }
}

void wait_for_room(int descriptor, const std::string& name) {
  while (!is_ready(descriptor, POLLOUT, name))
    if (stop_requested())
      throw Stopped(name + ": stopped while its reader took nothing; the rest is not written");
}

}  // namespace ropd
