#include "study/claim.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/error.h"
#include "support/kill_at_system_call.h"
#include "support/test_data.h"

namespace ropd::study {
namespace {

TEST(Claim, IsHeldByOneAtATime) {
  const test::TemporaryDirectory directory;
  std::optional<Claim> first(std::in_place, directory / "claims", "node");
  EXPECT_TRUE(first->is_held());
  EXPECT_FALSE(Claim(directory / "claims", "node").is_held());
  EXPECT_TRUE(Claim(directory / "claims", "other").is_held());
  EXPECT_EQ(claim_holder(directory / "claims", "node"), io::this_process());
  first.reset();
  EXPECT_EQ(claim_holder(directory / "claims", "node"), std::nullopt);
  EXPECT_TRUE(Claim(directory / "claims", "node").is_held());
}

TEST(Claim, OfAKilledProcessIsTakenOver) {
  const test::TemporaryDirectory directory;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Claim claim(directory / "claims", "node");
    const char held = claim.is_held() ? 'y' : 'n';
    if (write(ready[1], &held, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char held = '?';
  ASSERT_EQ(read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_FALSE(Claim(directory / "claims", "node").is_held());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Claim(directory / "claims", "node").is_held());
}

TEST(Claim, IsTakenInSpiteOfASignal) {
  const test::TemporaryDirectory directory;
  const auto claim = [&] {
    if (!Claim(directory / "claims", "node").is_held()) fail("not held");
  };
  for (const long call : {SYS_openat, SYS_flock, SYS_ftruncate, SYS_write})
    EXPECT_EQ(test::error_when_system_call_fails(claim, call, 1, EINTR), "") << call;
}

}  // namespace
}  // namespace ropd::study
