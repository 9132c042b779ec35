#include "base/threads.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace ropd {
namespace {

constexpr int64_t kMuch = int64_t{1} << 40;

class Threads : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(before_); }

 private:
  const size_t before_ = num_threads();
};
INSTANTIATE_TEST_SUITE_P(FromOneTo64, Threads, testing::Values(1, 2, 3, 8, 64));

TEST_P(Threads, ShareOutWhatThereIsAndAreAllBackInTheEnd) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> next = 0, inside = 0;
    std::vector<int> done(97);  // plain memory: whoever comes back has made it visible
    run_on_threads(num_threads(), round % 2 ? kMuch : 0, [&](size_t worker) {
      ++inside;
      EXPECT_LT(worker, GetParam());
      for (int task; (task = next++) < 97;) done[static_cast<size_t>(task)] = task + round;
      --inside;
    });
    ASSERT_EQ(inside, 0);
    for (int task = 0; task < 97; ++task) ASSERT_EQ(done[static_cast<size_t>(task)], task + round);
  }
}

TEST_P(Threads, HaveNumbersOfTheirOwnFromZeroOn) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::atomic<int>> calls(GetParam());
    const auto caller = std::this_thread::get_id();
    run_on_threads(GetParam(), kMuch, [&](size_t worker) {
      ++calls[worker];
      EXPECT_EQ(worker == 0, std::this_thread::get_id() == caller);
    });
    EXPECT_EQ(calls[0], 1);
    for (size_t worker = 1; worker < calls.size(); ++worker) EXPECT_LE(calls[worker], calls[worker - 1]);
  }
}

TEST_P(Threads, ComeWhenThereIsMuchToDo) {
  // Nobody leaves before all are there.
  Countdown all_here(static_cast<uint32_t>(GetParam()));
  std::atomic<size_t> came = 0;
  run_on_threads(GetParam(), kMuch, [&](size_t) {
    ++came;
    all_here.one_done();
    all_here.wait();
  });
  EXPECT_EQ(came, GetParam());
}

TEST_P(Threads, StayWithinTheNumberAskedFor) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<size_t> came = 0;
    run_on_threads(2, kMuch, [&](size_t worker) {
      EXPECT_LT(worker, 2u);
      ++came;
    });
    EXPECT_LE(came, 2u);
  }
}

TEST_P(Threads, WorkInsideOfWorkStaysOnItsThread) {
  EXPECT_FALSE(is_in_parallel());
  run_on_threads(GetParam(), kMuch, [&](size_t) {
    EXPECT_TRUE(is_in_parallel());
    const auto outer = std::this_thread::get_id();
    run_on_threads(GetParam(), kMuch, [&](size_t worker) {
      EXPECT_EQ(worker, 0u);
      EXPECT_EQ(std::this_thread::get_id(), outer);
    });
    EXPECT_TRUE(is_in_parallel());
  });
  EXPECT_FALSE(is_in_parallel());
}

TEST_P(Threads, AFailureComesOutOnceAndTheNextWorkIsDone) {
  const auto run = [](bool fails) {
    run_on_threads(num_threads(), kMuch, [&](size_t) {
      if (fails) throw std::runtime_error("failed");
    });
  };
  EXPECT_THROW(run(true), std::runtime_error);
  EXPECT_NO_THROW(run(false));
}

TEST_P(Threads, SeveralCallersDoNotWaitForEachOther) {
  // Each has work that ends only when all of them are in theirs.
  constexpr int kCallers = 3;
  Countdown all_inside(kCallers);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i)
    callers.emplace_back([&] {
      run_on_threads(num_threads(), 0, [&](size_t worker) {
        if (worker != 0) return;
        all_inside.one_done();
        all_inside.wait();
      });
    });
  for (std::thread& caller : callers) caller.join();
}

// A clock that says what it is told.
struct ToldClock {
  using rep = std::chrono::steady_clock::rep;
  using time_point = std::chrono::steady_clock::time_point;
  static inline time_point time{};
  static inline std::chrono::nanoseconds step{1000};
  static time_point now() { return time += step; }
};

TEST(Patience, EndsAfterAWhileAndIsThereAgain) {
  ToldClock::step = std::chrono::microseconds(1);
  Patience<ToldClock> patience;
  for (int i = 0; i < 3; ++i) {
    int looks = 0;
    EXPECT_FALSE(patience.look([&] { return ++looks < 0; }));
    EXPECT_GT(looks, 1000);
    EXPECT_FALSE(patience.is_crowded());
  }
  int looks = 0;
  EXPECT_TRUE(patience.look([&] { return ++looks == 500; }));
}

TEST(Patience, IsGoneForSomeTimeAfterTheCoreWasLost) {
  ToldClock::step = std::chrono::milliseconds(3);  // between two readings another program ran
  Patience<ToldClock> patience;
  int looks = 0;
  EXPECT_FALSE(patience.look([&] { return ++looks < 0; }));
  EXPECT_LT(looks, 50);
  ToldClock::step = std::chrono::microseconds(1);
  EXPECT_TRUE(patience.is_crowded());
  looks = 0;
  EXPECT_FALSE(patience.look([&] { return ++looks < 0; }));
  EXPECT_EQ(looks, 1);
  ToldClock::time += std::chrono::milliseconds(200);
  EXPECT_FALSE(patience.is_crowded());
  EXPECT_FALSE(patience.look([&] { return ++looks < 0; }));
  EXPECT_GT(looks, 1000);
}

}  // namespace
}  // namespace ropd
