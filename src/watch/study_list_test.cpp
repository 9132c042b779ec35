#include "watch/study_list.h"

#include <gtest/gtest.h>

#include "support/test_data.h"
#include "watch/run_list.h"

namespace ropd::watch {
namespace {

io::ProcessIdentity gone() {
  io::ProcessIdentity process = io::this_process();
  process.start_ticks += 1;
  return process;
}

io::StudyGraph example() {
  return {.name = "replay",
          .is_complete = false,
          .nodes = {{"b", "bank", "initial bank", {}, true, {}},
                    {"t", "training", "training of <fixed>\x1b", {"b"}, false, io::this_process()},
                    {"e", "evaluation", "evaluation", {"t", "b"}, false, {}}}};
}

TEST(JudgeNode, LooksForTheProcess) {
  io::GraphNode node{.id = "x"};
  EXPECT_EQ(judge_node(node), NodeState::open);
  node.worker = io::this_process();
  EXPECT_EQ(judge_node(node), NodeState::working);
  node.worker = gone();
  EXPECT_EQ(judge_node(node), NodeState::dead);
  node.worker->host += " of another kind";
  EXPECT_EQ(judge_node(node), NodeState::working);  // only its own machine knows
  node.is_done = true;
  EXPECT_EQ(judge_node(node), NodeState::done);
}

TEST(StudyList, IsFoundCountedAndFollowed) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directories(directory / "lab/runs/t");
  write_file_atomically(directory / "lab/runs/t/config.yaml", "seed: 1\n");
  io::write_graph(directory / "lab/replay.graph.json", example());
  RunList list(directory.path());
  const uint64_t first = list.refresh(1000);
  ASSERT_EQ(list.studies().size(), 1u);
  const StudySummary* study = list.find_study("lab/replay");
  ASSERT_TRUE(study);
  const Json summary = study_summary_json(*study);
  EXPECT_EQ(summary["done"], 1);
  EXPECT_EQ(summary["working"], 1);
  EXPECT_EQ(summary["nodes"], 3);
  EXPECT_EQ(summary["complete"], false);
  EXPECT_EQ(visible_name(list.runs().front()), "<fixed>␛");  // what the study calls it
  const Json json =
      study_json(*study, [](const Path& folder) { return "run " + folder.filename().string(); });
  EXPECT_EQ(json["nodes"][2]["needs"], Json::array({1, 0}));
  EXPECT_EQ(json["nodes"][1]["run"], "run t");
  EXPECT_EQ(json["nodes"][1]["state"], "working");
  EXPECT_EQ(list.refresh(1001), first);
  io::StudyGraph next = example();
  next.nodes[1].worker = gone();
  next.nodes[1].label = "another";
  io::write_graph(directory / "lab/replay.graph.json", next);
  EXPECT_GT(list.refresh(1002), first);
  EXPECT_EQ(study_summary_json(*list.find_study("lab/replay"))["dead"], 1);
}

TEST(StudyList, AFileThatCannotBeReadIsSaidToBeSo) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "x.graph.json", "{");
  RunList list(directory.path());
  list.refresh(1000);
  ASSERT_TRUE(list.find_study("x"));
  EXPECT_EQ(study_summary_json(*list.find_study("x"))["readable"], false);
  EXPECT_EQ(study_json(*list.find_study("x"), {})["nodes"], Json::array());
}

}  // namespace
}  // namespace ropd::watch
