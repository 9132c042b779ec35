#include "study/graph_state.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "study/claim.h"
#include "support/test_data.h"

namespace ropd::study {
namespace {

TEST(GraphState, SaysDoneWorkingAndOpen) {
  const test::TemporaryDirectory directory;
  const Store store(directory.path());
  StudyFile file;
  file.config.name = "replay";
  Plan plan;
  plan.graph.nodes = {{.id = "a", .kind = NodeKind::bank, .label = "initial bank"},
                      {.id = "b", .kind = NodeKind::evaluation, .label = "evaluation", .needs = {"a"}},
                      {.id = "c", .kind = NodeKind::diagnosis, .label = "diagnosis", .needs = {"a"}}};
  std::filesystem::create_directories(directory / "banks");
  write_file_atomically(store.bank("a"), "");
  const Claim claim(store.claims(), "b");
  write_graph_state(file, plan, store);
  const auto graph = io::read_graph(directory / "replay.graph.json");
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->name, "replay");
  ASSERT_EQ(graph->nodes.size(), 3u);
  EXPECT_TRUE(graph->nodes[0].is_done);
  EXPECT_EQ(graph->nodes[1].worker, io::this_process());
  EXPECT_FALSE(graph->nodes[1].is_done);
  EXPECT_FALSE(graph->nodes[2].is_done || graph->nodes[2].worker);
  EXPECT_EQ(graph->nodes[2].needs, std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace ropd::study
