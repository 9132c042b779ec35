#include "io/graph_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test_data.h"

namespace ropd::io {
namespace {

StudyGraph example() {
  return {.name = "replay",
          .is_complete = false,
          .nodes = {{"b0", "bank", "initial bank", {}, true, {}},
                    {"t1", "training", "training of fixed", {"b0"}, false, ProcessIdentity{"host", 12, 34}},
                    {"e1", "evaluation", "evaluation of fixed", {"t1"}, false, {}}}};
}

TEST(GraphFile, IsReadAsItWasWritten) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "replay.graph.json";
  write_graph(path, example());
  const auto read = read_graph(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(graph_json(*read), graph_json(example()));
  EXPECT_EQ(read->nodes[1].worker->pid, 12);
  EXPECT_FALSE(read->nodes[2].worker);
  EXPECT_FALSE(read->is_complete);
}

TEST(GraphFile, LeavesNothingBesideIt) {
  const test::TemporaryDirectory directory;
  write_graph(directory / "replay.graph.json", example());
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory.path())) ++count;
  EXPECT_EQ(count, 1u);
}

TEST(GraphFile, RemovesWhatAKilledProcessLeftBesideIt) {
  const test::TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);  // its number belongs to nobody now
  const Path dead = directory / ("replay.graph.json." + std::to_string(child) + ".tmp");
  const Path alive = directory / ("replay.graph.json." + std::to_string(::getppid()) + ".tmp");
  const Path other = directory / "replay.graph.json.mine.tmp";
  for (const Path& path : {dead, alive, other}) write_file_atomically(path, "half");
  write_graph(directory / "replay.graph.json", example());
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(alive));
  EXPECT_TRUE(std::filesystem::exists(other));
}

TEST(GraphFile, WhatIsNoGraphIsNothing) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "x.graph.json";
  EXPECT_FALSE(read_graph(path));
  StudyGraph needs_later = example(), twice = example();
  std::swap(needs_later.nodes[0], needs_later.nodes[1]);
  twice.nodes.push_back(twice.nodes[0]);
  for (const std::string& text : {std::string("[]"), std::string("{\"name\":"),
                                  std::string("{\"name\":\"x\",\"complete\":true,\"nodes\":[1]}"),
                                  graph_json(needs_later), graph_json(twice)}) {
    write_file_atomically(path, text);
    EXPECT_FALSE(read_graph(path)) << text;
  }
}

}  // namespace
}  // namespace ropd::io
