// A small HTTP server for pages of this machine only: it listens on the loopback address and nowhere else,
// answers GET to hosts named localhost, 127.0.0.1 or [::1] (so that no foreign name can be bound to it), and
// keeps limits on everything a peer decides: size of header and address, connections, time to ask and time
// to take an answer. Changes go to open pages as server-sent events; a slow page misses steps in between, it
// never makes a queue grow. One thread; the only file that knows Boost is server.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "watch/site.h"

namespace ropd::watch {

struct ServerConfig {
  uint16_t port = 8700;  // 0 = any that is free
  size_t max_connections = 256;
  uint32_t max_header_bytes = 8192;
  size_t max_target_bytes = 2048;
  int request_seconds = 10;  // to send a request
  int idle_seconds = 30;     // between two requests
  int answer_seconds = 60;   // to take an answer or an event
  int quiet_seconds = 15;    // without news until a page hears that it is still connected
  int refresh_ms = 1000;     // between two looks at the files while a page is open
};

// The Host header's value, with or without a port: localhost, 127.0.0.1 or [::1].
bool is_local_host(std::string_view host);

class Server {
 public:
  struct State;
  // Listens from here on; fails when the port is taken.
  Server(Site site, ServerConfig config);
  ~Server();
  uint16_t port() const;
  // Until is_stopped() says so; asked several times a second.
  void run(const std::function<bool()>& is_stopped);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace ropd::watch
