#include "watch/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::watch {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A plain socket to 127.0.0.1; reads wait for what they are told, so no test depends on time.
class Peer {
 public:
  explicit Peer(uint16_t port, const char* address = "127.0.0.1")
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    ::inet_pton(AF_INET, address, &place.sin_addr);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0;
  }
  Peer(Peer&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        is_connected_(other.is_connected_),
        received_(std::move(other.received_)) {}
  ~Peer() {
    if (socket_ >= 0) ::close(socket_);
  }
  bool is_connected() const { return is_connected_; }
  void send(const std::string& text) { (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Until `part` was seen or the other side ended it.
  std::string read_until(const std::string& part) {
    while (received_.find(part) == std::string::npos) {
      char bytes[4096];
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      received_.append(bytes, static_cast<size_t>(count));
    }
    return received_;
  }
  std::string read_to_end() { return read_until(std::string(1, '\0') + "never"); }
  void forget() { received_.clear(); }

 private:
  int socket_;
  bool is_connected_ = false;
  std::string received_;
};

class ServerTest : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Server> server_;
  std::thread thread_;

  void start(ServerConfig config = {}) {
    test::write_text(directory_ / "a/config.yaml", "seed: 1\n");
    test::write_fake_metrics(directory_ / "a", {.name = "a", .accuracy = {}, .iterations = 3});
    config.port = 0;
    server_ = std::make_unique<Server>(Site(directory_.path()), config);
    thread_ = std::thread([this] { server_->run([this] { return stop_.load(); }); });
  }
  void TearDown() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::string ask(const std::string& request) {
    Peer peer(server_->port());
    peer.send(request);
    return peer.read_to_end();
  }
  std::string get(const std::string& target, const std::string& host = "localhost") {
    return ask("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }
};

TEST(IsLocalHost, KnowsThisMachineOnly) {
  for (const char* host : {"localhost", "localhost:8700", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8700"})
    EXPECT_TRUE(is_local_host(host)) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.2", "0.0.0.0",
        "localhost:", "localhost:x", "localhost:123456", "localhost@evil", "LOCALHOST "})
    EXPECT_FALSE(is_local_host(host)) << host;
}

TEST_F(ServerTest, ServesThePageWithAStrictPolicyAndNoSharing) {
  start();
  const std::string page = get("/");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self';"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(page, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(page, HasSubstr("Cross-Origin-Resource-Policy: same-origin\r\n"));
  EXPECT_THAT(page, Not(HasSubstr("Access-Control-Allow")));
  EXPECT_THAT(page, HasSubstr("<title>ropd watch</title>"));
  EXPECT_THAT(get("/api/runs"), HasSubstr("\"id\":\"a\""));
  EXPECT_THAT(get("/nothing"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(ServerTest, ListensOnLoopbackOnly) {
  start();
  EXPECT_TRUE(Peer(server_->port()).is_connected());
  EXPECT_FALSE(Peer(server_->port(), "127.0.0.2").is_connected());  // any other address, even of this machine
}

TEST_F(ServerTest, RefusesForeignHosts) {
  start();
  EXPECT_THAT(get("/", "evil.example"), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"),
              StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(get("/events", "evil.example"), StartsWith("HTTP/1.1 421 "));
}

TEST_F(ServerTest, AnswersGetOnly) {
  start();
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"}) {
    const std::string answer = ask(std::string(method) + " / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET\r\n")) << method;
  }
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(ServerTest, KeepsLimitsOnWhatAPeerSends) {
  start();
  EXPECT_THAT(get("/" + std::string(3000, 'a')), StartsWith("HTTP/1.1 414 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(9000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("no http at all\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(get("/?a=%zz"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(ServerTest, EndsAPeerThatDoesNotAsk) {
  start({.request_seconds = 0});
  Peer silent(server_->port());
  EXPECT_EQ(silent.read_to_end(), "");
}

TEST_F(ServerTest, EndsConnectionsBeyondTheLimit) {
  start({.max_connections = 2});
  Peer first(server_->port()), second(server_->port());
  for (Peer* peer : {&first, &second}) {
    peer->send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(peer->read_until("retry"), HasSubstr("200 OK"));
  }
  EXPECT_EQ(get("/"), "");
}

TEST_F(ServerTest, KeepsAConnectionForSeveralRequests) {
  start();
  Peer peer(server_->port());
  for (int i = 0; i < 3; ++i) {
    peer.forget();
    peer.send("GET /icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(peer.read_until("</svg>"), StartsWith("HTTP/1.1 200 OK"));
  }
}

TEST_F(ServerTest, SendsChangesToOpenPages) {
  start({.refresh_ms = 1});
  Peer page(server_->port());
  page.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(page.read_until("\"id\":\"a\""), HasSubstr("Content-Type: text/event-stream"));
  page.forget();
  io::ProgressFile(directory_ / "a/progress.json").write({.name = "a", .iteration = 77});
  EXPECT_THAT(page.read_until("\"iteration\":77"), HasSubstr("data: {"));
}

TEST(Server, SaysThatAPortIsTaken) {
  const test::TemporaryDirectory directory;
  Server first(Site(directory.path()), {.port = 0});
  try {
    const Server second(Site(directory.path()), {.port = first.port()});
    ADD_FAILURE() << "two servers on one port";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("choose one with --port"));
  }
}

// The bounds of issue 20: 200 connections, slow readers, 10,000 requests, memory flat.
uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(ServerTest, TwoHundredPagesAndTenThousandRequestsLeaveMemoryFlat) {
  start({.refresh_ms = 1});
  std::vector<Peer> pages;
  for (int i = 0; i < 150; ++i) {
    pages.emplace_back(server_->port());
    pages.back().send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(pages.back().read_until("\"id\":\"a\""), HasSubstr("200 OK"));
  }
  std::vector<Peer> slow;  // they ask for large answers and never read
  for (int i = 0; i < 50; ++i) {
    slow.emplace_back(server_->port());
    for (int k = 0; k < 20; ++k)
      slow.back().send("GET /api/charts?run=a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  const auto ask_often = [&](int count) {
    Peer peer(server_->port());
    for (int i = 0; i < count; ++i) {
      peer.forget();
      peer.send("GET /icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n");
      ASSERT_THAT(peer.read_until("</svg>"), StartsWith("HTTP/1.1 200 OK"));
    }
  };
  ask_often(2'000);
  const uint64_t before = resident_bytes();
  ask_often(8'000);
#if !defined(__SANITIZE_ADDRESS__)  // which keeps what was freed for a while
  EXPECT_LT(resident_bytes(), before + (4 << 20));
#else
  (void)before;
#endif
}

TEST_F(ServerTest, APageWithoutNewsHearsThatItIsConnected) {
  start({.quiet_seconds = 0});
  Peer page(server_->port());
  page.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(page.read_until("event: alive\ndata: 1\n\n"), HasSubstr("event: alive"));
}

}  // namespace
}  // namespace ropd::watch
