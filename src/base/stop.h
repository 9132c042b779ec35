// SIGINT and SIGTERM as a request that stages poll between units of work. A second SIGINT, a
// tenth of a second later or more, ends the program at once.
#pragma once
namespace ropd {

void install_stop_handlers();
bool stop_requested();
void request_stop();  // what the handler does; for tests and for a failed peer
void clear_stop_request();

}  // namespace ropd
