// SIGINT, SIGTERM, SIGHUP and SIGUSR1 (what batch systems send before the time is up) as a request that stages
// poll between units of work. A second SIGINT, a tenth of a second later or more, ends the program at once.
// SIGHUP stays ignored where it was at the start (nohup); SIGPIPE is ignored, because whoever reads a run's
// messages must be able to leave.
#pragma once
#include <cstdint>

namespace ropd {

void install_stop_handlers();
bool stop_requested();
void request_stop();  // what the handler does; for tests and for a failed peer
void clear_stop_request();

// timeout(1) and some shells deliver one interrupt twice, to the program and to its process group; no one
// presses the keys again that fast. Times of one clock.
constexpr bool is_same_interrupt(int64_t first_ms, int64_t now_ms) { return now_ms - first_ms <= 100; }

}  // namespace ropd
