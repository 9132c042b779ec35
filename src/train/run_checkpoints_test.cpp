#include "train/run_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/log.h"
#include "support/staged_world.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::HasSubstr;

// Something that one thread waits for and another makes true; the wait is bounded so that a fault is a failure.
class Event {
 public:
  void happen() { promise_.set_value(); }
  bool comes() { return future_.wait_for(std::chrono::minutes(2)) == std::future_status::ready; }

 private:
  std::promise<void> promise_;
  std::future<void> future_ = promise_.get_future();
};

// A run on doubles that has made an iteration of three updates, and its checkpoints.
class RunCheckpointsTest : public testing::Test {
 protected:
  RunCheckpointsTest() {
    set_log_level(LogLevel::quiet);
    (void)world.trainer.iterate();
  }
  ~RunCheckpointsTest() override { clear_stop_request(); }
  void begin() { checkpoints.begin(world.trainer.step(), world.trainer.snapshot()); }
  Path saved(const char* file) const { return world.folder / "checkpoints/step-00003" / file; }

  std::function<void()> before_change;
  test::StagedWorld world{{"curriculum.stages=[{source: current}]"}, {.before_change = [this] {
                            if (before_change) before_change();
                          }}};
  io::CheckpointStore store{world.folder / "checkpoints"};
  RunCheckpoints checkpoints{store, {}, /*is_alone=*/true};
};

TEST_F(RunCheckpointsTest, AreWrittenWhileTheNextIterationSamplesUpToItsFirstChange) {
  Event change;
  std::vector<std::string> done_meanwhile;
  world.learner.on_save = [&] { EXPECT_TRUE(change.comes()); };
  before_change = [&] {
    if (done_meanwhile.empty()) {
      done_meanwhile = world.diary;
      change.happen();
    }
    checkpoints.wait();
  };
  begin();
  world.diary.clear();
  (void)world.trainer.iterate();
  EXPECT_THAT(done_meanwhile,
              testing::ElementsAre("weights of step 3", "sample 10", "release", "score 10", "gradient of 4"));
  EXPECT_EQ(world.learner.value, 3.0);
  EXPECT_EQ(std::stod(read_file(saved("value"))), 1.5) << "as it was when it was begun";
  EXPECT_EQ(read_run_state(saved("")).supply.consumed, 10u);
  EXPECT_EQ(io::verify_checkpoint(saved("")), 3u);
  EXPECT_EQ(read_file(world.folder / "checkpoints/LATEST"), "step-00003\n");
  EXPECT_GT(checkpoints.take_seconds().writing, 0);
  EXPECT_EQ(checkpoints.take_seconds().writing, 0);
}

TEST_F(RunCheckpointsTest, AFailureIsToldBeforeAnythingChanges) {
  world.learner.on_save = [] { fail("the disk is full"); };
  before_change = [&] { checkpoints.wait(); };
  begin();
  EXPECT_THAT(error_of([&] { (void)world.trainer.iterate(); }), HasSubstr("the disk is full"));
  EXPECT_EQ(world.learner.value, 1.5);
  EXPECT_TRUE(io::list_checkpoints(store.directory()).empty());
}

TEST_F(RunCheckpointsTest, AStopRequestWhileSamplingLeavesAWholeCheckpoint) {
  Event stop;
  world.learner.on_save = [&] { EXPECT_TRUE(stop.comes()); };
  world.generator.on_run = [&] {
    request_stop();
    stop.happen();
  };
  begin();
  EXPECT_FALSE(world.trainer.iterate().has_value());
  checkpoints.wait();
  EXPECT_EQ(io::verify_checkpoint(saved("")), 3u);
  EXPECT_EQ(checkpoints.last_step(), 3u);
}

TEST_F(RunCheckpointsTest, EndWhenWhatWasBegunIsWritten) {
  Event end;
  world.learner.on_save = [&] { EXPECT_TRUE(end.comes()); };
  {
    RunCheckpoints last(store, {}, /*is_alone=*/true);
    last.begin(world.trainer.step(), world.trainer.snapshot());
    end.happen();
  }
  EXPECT_EQ(io::verify_checkpoint(saved("")), 3u);
}

// Other ranks answer only while the leader asks for nothing else.
TEST_F(RunCheckpointsTest, AreFilledAtOnceWhereOtherRanksHaveAPart) {
  std::thread::id filled_by;
  world.learner.on_save = [&] { filled_by = std::this_thread::get_id(); };
  RunCheckpoints of_ranks(store, {}, /*is_alone=*/false);
  of_ranks.begin(world.trainer.step(), world.trainer.snapshot());
  EXPECT_EQ(filled_by, std::this_thread::get_id());
  of_ranks.wait();
  EXPECT_EQ(io::verify_checkpoint(saved("")), 3u);
}

TEST(GivenUpCheckpoints, LieUnderAFreeNameBesideTheirPlace) {
  set_log_level(LogLevel::quiet);
  test::TemporaryDirectory folder;
  const auto directory = io::RunDirectory::create(folder / "run", "a: 1\n", "{}\n");
  for (const char* name : {"checkpoints.given-up-1", "checkpoints.given-up-2"}) {
    std::filesystem::create_directories(directory.checkpoints() / "step-00004");
    give_up_checkpoints(directory);
    EXPECT_FALSE(std::filesystem::exists(directory.checkpoints()));
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / name / "step-00004"));
  }
  set_log_level(LogLevel::info);
}

TEST(MetricsInACheckpoint, ComeBackWhereLinesWereLost) {
  set_log_level(LogLevel::quiet);
  test::TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "step");
  keep_metrics(folder / "step", "");  // there are none yet
  bring_back_metrics(folder / "metrics.jsonl", folder / "step");
  EXPECT_FALSE(std::filesystem::exists(folder / "metrics.jsonl"));
  keep_metrics(folder / "step", "{\"step\": 1}\n{\"step\": 2}\n");
  write_file_atomically(folder / "metrics.jsonl", "{\"step\": 2}\n");
  bring_back_metrics(folder / "metrics.jsonl", folder / "step");
  EXPECT_EQ(read_file(folder / "metrics.jsonl"), "{\"step\": 1}\n{\"step\": 2}\n");
  EXPECT_EQ(read_file(folder / "metrics.discarded.jsonl"), "{\"step\": 2}\n");
  set_log_level(LogLevel::info);
}

}  // namespace
}  // namespace ropd::train
