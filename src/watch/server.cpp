#include "watch/server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <chrono>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ropd::watch {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{100};  // between two looks at what time brings

// Nothing runs or loads that is not of this server; nothing of it is shown or kept anywhere else.
constexpr const char* kSafetyHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 414:
      return "URI Too Long";
    case 421:
      return "Misdirected Request";
    default:
      return "Internal Server Error";
  }
}

Answer refusal(int status, const char* text) {
  return {status, "text/plain; charset=utf-8", std::make_shared<const std::string>(text)};
}

}  // namespace

bool is_local_host(std::string_view host) {
  const size_t bracket = host.find(']'),
               colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string_view::npos)
      return false;
    host = host.substr(0, colon);
  }
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

class Connection;

struct Server::State {
  State(Site the_site, ServerConfig the_config)
      : site(std::move(the_site)), config(the_config), acceptor(context), timer(context) {}

  Site site;
  const ServerConfig config;
  asio::io_context context{1};
  tcp::acceptor acceptor;
  asio::steady_timer timer;
  std::set<std::shared_ptr<Connection>> connections;
  size_t num_streams = 0;
  steady_clock::time_point refreshed{};
  std::function<bool()> is_stopped;

  void accept();
  void tick();
  void refresh();
  void shut_down();
};

// One peer: requests one after the other, or an event stream until either side ends it. Kept alive by
// State::connections.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Server::State& server) : stream_(std::move(socket)), server_(server) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(server_.config.max_header_bytes);
    parser_->body_limit(0);
    // Bytes of a request have to follow each other quickly; before its first one a peer may be idle.
    stream_.expires_after(
        std::chrono::seconds(is_first_ ? server_.config.request_seconds : server_.config.idle_seconds));
    is_first_ = false;
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, size_t) { self->have_read(error); });
  }

  bool is_stream() const { return is_stream_; }

  // News for a page, unless it is still busy with the last ones; or a sign of life now and then.
  void tell(uint64_t version, steady_clock::time_point now) {
    if (is_writing_) {
      if (now - write_began_ > std::chrono::seconds(server_.config.answer_seconds)) close();
      return;
    }
    if (version > known_version_) {
      const std::string text =
          "id: " + std::to_string(version) + "\ndata: " + server_.site.changes_since(known_version_) + "\n\n";
      known_version_ = version;
      write_event(text, now);
    } else if (now - write_began_ > std::chrono::seconds(server_.config.quiet_seconds)) {
      write_event("event: alive\ndata: 1\n\n", now);  // a comment would not reach the page
    }
  }

  void close() {
    const auto self = shared_from_this();
    if (server_.connections.erase(self) == 0) return;
    if (is_stream_) --server_.num_streams;
    stream_.close();
  }

 private:
  beast::tcp_stream stream_;
  Server::State& server_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::string header_;
  Answer answer_;
  bool is_first_ = true;
  // of an event stream
  bool is_stream_ = false, is_writing_ = false;
  uint64_t known_version_ = 0;
  steady_clock::time_point write_began_{};

  void have_read(error_code error) {
    if (error == http::error::header_limit) return send(refusal(400, "header too long\n"), false);
    if (error == http::error::unexpected_body || error == http::error::body_limit)
      return send(refusal(400, "no body is expected\n"), false);
    if (error && error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream)
      return send(refusal(400, "not understood\n"), false);
    if (error) return close();
    const auto& request = parser_->get();
    if (request.method() != http::verb::get) return send(refusal(405, "only GET\n"), false);
    if (request.count(http::field::host) != 1 || !is_local_host(request[http::field::host]))
      return send(refusal(421, "only for pages of this machine: localhost, 127.0.0.1 or [::1]\n"), false);
    if (request.target().size() > server_.config.max_target_bytes)
      return send(refusal(414, "address too long\n"), false);
    const auto target = parse_target(request.target());
    if (!target) return send(refusal(400, "address not understood\n"), false);
    if (target->path == "/events") return begin_stream();
    server_.refresh();
    send(server_.site.answer(*target), request.keep_alive());
  }

  void send(Answer answer, bool keep_alive) {
    answer_ = std::move(answer);
    header_ = "HTTP/1.1 " + std::to_string(answer_.status) + " " + reason_of(answer_.status) +
              "\r\nContent-Type: " + answer_.content_type +
              "\r\nContent-Length: " + std::to_string(answer_.body->size()) + "\r\n" + kSafetyHeaders +
              (answer_.status == 405 ? "Allow: GET\r\n" : "") + (keep_alive ? "" : "Connection: close\r\n") +
              "\r\n";
    stream_.expires_after(std::chrono::seconds(server_.config.answer_seconds));
    const std::vector<asio::const_buffer> parts = {asio::buffer(header_), asio::buffer(*answer_.body)};
    asio::async_write(stream_, parts, [self = shared_from_this(), keep_alive](error_code error, size_t) {
      self->answer_ = {};
      if (error || !keep_alive) return self->close();
      self->read();
    });
  }

  void begin_stream() {
    is_stream_ = true;
    ++server_.num_streams;
    stream_.expires_never();  // tell() looks after the time that events take
    write_event(std::string("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n") +
                    kSafetyHeaders + "\r\nretry: 1000\n\n",
                steady_clock::now());
    wait_for_end();
  }

  // A page says nothing more; whatever comes, its end included, ends the stream.
  void wait_for_end() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(1),
                            [self = shared_from_this()](error_code, size_t) { self->close(); });
  }

  void write_event(std::string text, steady_clock::time_point now) {
    is_writing_ = true;
    write_began_ = now;
    header_ = std::move(text);
    asio::async_write(stream_, asio::buffer(header_), [self = shared_from_this()](error_code error, size_t) {
      self->is_writing_ = false;
      if (error) self->close();
    });
  }
};

void Server::State::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    // Beyond the limit, and when there are no descriptors left, the peer is simply not served.
    if (!error && connections.size() < config.max_connections) {
      const auto connection = std::make_shared<Connection>(std::move(socket), *this);
      connections.insert(connection);
      connection->read();
    }
    accept();
  });
}

void Server::State::refresh() {
  const auto now = steady_clock::now();
  if (now - refreshed < std::chrono::milliseconds(config.refresh_ms)) return;
  refreshed = now;
  site.refresh(unix_time());
}

void Server::State::tick() {
  timer.expires_after(kTick);
  timer.async_wait([this](error_code) {
    if (is_stopped()) return shut_down();
    if (num_streams > 0) {
      refresh();
      const auto now = steady_clock::now();
      const auto all = connections;  // telling may end one
      for (const auto& connection : all)
        if (connection->is_stream()) connection->tell(site.version(), now);
    }
    tick();
  });
}

void Server::State::shut_down() {
  acceptor.close();
  const auto all = connections;
  for (const auto& connection : all) connection->close();
  context.stop();
}

Server::Server(Site site, ServerConfig config) : state_(std::make_unique<State>(std::move(site), config)) {
  const tcp::endpoint place(asio::ip::address_v4::loopback(), config.port);
  error_code error;
  auto& acceptor = state_->acceptor;
  acceptor.open(place.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(place, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    fail("port ", config.port, " of 127.0.0.1: ", error.message(),
         " (another ropd watch? choose one with --port)");
}

Server::~Server() = default;

uint16_t Server::port() const { return state_->acceptor.local_endpoint().port(); }

void Server::run(const std::function<bool()>& is_stopped) {
  state_->is_stopped = is_stopped;
  state_->accept();
  state_->tick();
  state_->context.run();
}

}  // namespace ropd::watch
