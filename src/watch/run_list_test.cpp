#include "watch/run_list.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::watch {
namespace {

io::ProgressRecord working(double heartbeat) {
  return {.process = io::this_process(), .phase = io::RunPhase::running, .heartbeat = heartbeat};
}

TEST(JudgeState, SaysWhatAProcessLeftBehind) {
  const auto phase = [](io::RunPhase value) {
    io::ProgressRecord record = working(1000);
    record.phase = value;
    return record;
  };
  EXPECT_EQ(judge_state(std::nullopt, true, 1000), RunState::unknown);
  EXPECT_EQ(judge_state(phase(io::RunPhase::finished), false, 9999), RunState::finished);
  EXPECT_EQ(judge_state(phase(io::RunPhase::stopped), false, 9999), RunState::stopped);
  EXPECT_EQ(judge_state(phase(io::RunPhase::failed), true, 9999), RunState::failed);
}

TEST(JudgeState, TellsWorkingFromDead) {
  EXPECT_EQ(judge_state(working(1000), true, 1001), RunState::running);
  EXPECT_EQ(judge_state(working(1000), true, 9999), RunState::running);  // a long step
  EXPECT_EQ(judge_state(working(1000), false, 1005), RunState::running);
  EXPECT_EQ(judge_state(working(1000), false, 1011), RunState::dead);
  EXPECT_EQ(judge_state(working(1000), std::nullopt, 1100), RunState::running);  // of another machine
  EXPECT_EQ(judge_state(working(1000), std::nullopt, 1181), RunState::silent);
}

class RunListTest : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  void write_run(const std::string& id) {
    test::write_text(directory_ / id / "config.yaml", "seed: 1\n");
    test::write_fake_metrics(directory_ / id, {.name = id, .accuracy = {}, .iterations = 3});
  }
  std::vector<std::string> ids(const RunList& list) {
    std::vector<std::string> all;
    for (const RunSummary& run : list.runs()) all.push_back(run.id);
    return all;
  }
};

TEST_F(RunListTest, FindsRunsAtAnyDepthAndNothingInsideThem) {
  write_run("b/seed-1");
  write_run("a");
  test::write_text(directory_ / "a/checkpoints/step-1/config.yaml", "no run");
  test::write_text(directory_ / "notes/readme.txt", "no run");
  std::filesystem::create_directory_symlink(directory_.path(), directory_ / "loop");
  RunList list(directory_.path());
  list.refresh(1000);
  EXPECT_EQ(ids(list), (std::vector<std::string>{"a", "b/seed-1"}));
  EXPECT_TRUE(list.find("a"));
  EXPECT_FALSE(list.find("../a"));
  RunList alone(directory_ / "a");
  alone.refresh(1000);
  EXPECT_EQ(ids(alone), std::vector<std::string>{"."});
}

TEST_F(RunListTest, ChangesItsVersionOnlyWhenSomethingChanged) {
  write_run("a");
  write_run("b");
  RunList list(directory_.path());
  const uint64_t first = list.refresh(1000);
  EXPECT_EQ(list.refresh(1001), first);
  EXPECT_EQ(list.refresh(1100), first);  // walked again
  io::ProgressFile file(directory_ / "a/progress.json");
  file.write({.name = "a", .iteration = 2, .iterations = 3});
  const uint64_t second = list.refresh(1101);
  EXPECT_GT(second, first);
  EXPECT_EQ(list.find("a")->version, second);
  EXPECT_LE(list.find("b")->version, first);
  EXPECT_EQ(list.find("a")->progress->status.iteration, 2u);
  write_run("c");
  list.refresh(1200);
  EXPECT_EQ(ids(list), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_GT(list.membership_version(), second);
  std::filesystem::remove_all(directory_ / "b");
  list.refresh(1300);
  EXPECT_EQ(ids(list), (std::vector<std::string>{"a", "c"}));
}

TEST_F(RunListTest, ShowsTheNewestIterationAndHarmlessTexts) {
  test::write_text(
      directory_ / "a/metrics.jsonl",
      "{\"kind\":\"iteration\",\"iteration\":1,\"loss\":9}\n"
      "{\"kind\":\"iteration\",\"iteration\":2,\"loss\":0.5,\"ratio\":1.25,\"alarms\":[\"\\u001b[2J\"]}\n"
      "{\"kind\":\"step\",\"step\":9}\n{\"kind\":\"iteration\",\"iteration\":3,\"lo");
  RunList list(directory_.path());
  list.refresh(1000);
  const Json json = summary_json(*list.find("a"));
  EXPECT_EQ(json["last"]["iteration"], 2);
  EXPECT_EQ(json["last"]["ratio"], 1.25);
  EXPECT_EQ(json["last"]["alarms"], Json::array({"␛[2J"}));
  EXPECT_EQ(json["state"], "unknown");
}

TEST_F(RunListTest, ANameThatIsNoTextHasANumber) {
  write_run("a\xFF");
  RunList list(directory_.path());
  list.refresh(1000);
  const Json json = summary_json(list.runs().front());
  EXPECT_TRUE(list.find(json["id"]));
  EXPECT_EQ(json["name"], "a\uFFFD");
  EXPECT_NO_THROW(json.dump());
}

TEST_F(RunListTest, ABrokenFileIsNoReasonToFail) {
  test::write_text(directory_ / "a/metrics.jsonl", "{\"kind\":\"iteration\",]\n");
  test::write_text(directory_ / "b/metrics.jsonl", std::string(300'000, 'x'));
  test::write_text(directory_ / "b/progress.json", "[]");
  RunList list(directory_.path());
  list.refresh(1000);
  EXPECT_TRUE(summary_json(*list.find("a"))["last"].is_null());
  EXPECT_TRUE(summary_json(*list.find("b"))["last"].is_null());
}

TEST_F(RunListTest, APipeIsNotWaitedFor) {
  std::filesystem::create_directory(directory_ / "a");
  for (const char* name : {"a/metrics.jsonl", "a/progress.json", "x.graph.json"})
    ASSERT_EQ(::mkfifo((directory_ / name).c_str(), 0600), 0);
  RunList list(directory_.path());
  list.refresh(1000);
  EXPECT_TRUE(summary_json(*list.find("a"))["last"].is_null());
}

}  // namespace
}  // namespace ropd::watch
