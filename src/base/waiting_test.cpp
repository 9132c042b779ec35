#include "base/waiting.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/stop.h"

namespace ropd {
namespace {

class Waiting : public testing::Test {
 protected:
  Waiting() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~Waiting() override {
    clear_stop_request();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int ends_[2] = {-1, -1};
};

template <class Action>
std::string stopped_by(Action action) {
  try {
    action();
  } catch (const Stopped& stopped) {
    return stopped.what();
  }
  return "";
}

TEST_F(Waiting, EndsWithSomethingToRead) {
  ASSERT_EQ(::write(ends_[1], "x", 1), 1);
  wait_for_input(ends_[0], "pipe");
  wait_for_room(ends_[1], "pipe");
}

TEST_F(Waiting, ForInputEndsWithARequestToStop) {
  std::thread user([] { request_stop(); });
  EXPECT_THAT(stopped_by([&] { wait_for_input(ends_[0], "pipe"); }), testing::StartsWith("pipe: stopped "));
  user.join();
}

// The handlers are installed so that calls go on behind a signal, which is what a blocking read does.
TEST_F(Waiting, ForInputEndsWithASignal) {
  install_stop_handlers();
  const pthread_t waiting = pthread_self();
  std::thread user([&] { pthread_kill(waiting, SIGTERM); });
  EXPECT_THAT(stopped_by([&] { wait_for_input(ends_[0], "pipe"); }), testing::StartsWith("pipe: stopped "));
  user.join();
  ::signal(SIGTERM, SIG_DFL);
}

TEST_F(Waiting, ForRoomEndsWithARequestToStopOnlyWhereThereIsNone) {
  request_stop();
  wait_for_room(ends_[1], "pipe");
  ASSERT_EQ(::fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
  const std::string block(65536, 'x');
  while (::write(ends_[1], block.data(), block.size()) > 0) {
  }
  EXPECT_THAT(stopped_by([&] { wait_for_room(ends_[1], "pipe"); }), testing::StartsWith("pipe: stopped "));
}

TEST_F(Waiting, EndsWhenTheOtherEndIsClosed) {
  ::close(std::exchange(ends_[1], -1));
  wait_for_input(ends_[0], "pipe");
}

}  // namespace
}  // namespace ropd
