// Graph logic without training: what is shared, what is cut where, what depends on what.
#include "study/graph.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace ropd::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Paths are written as their states: "0ccii" is two current and two initial iterations behind state 0.
RunPath path(size_t run, const std::string& letters, std::vector<uint64_t> wanted) {
  RunPath result{.run = run, .label = "run " + std::to_string(run), .wanted = std::move(wanted)};
  for (size_t k = 0; k < letters.size(); ++k) {
    result.states.push_back(letters.substr(0, k + 1));
    if (letters[k] == 'i') result.bank_iterations.push_back(k);
  }
  if (!result.bank_iterations.empty()) result.bank = "bank";
  return result;
}

std::vector<std::string> ids(const std::vector<Node>& nodes) {
  std::vector<std::string> result;
  for (const Node& node : nodes) result.push_back(node.id);
  return result;
}

TEST(TrainingNodes, ASingleRunIsOnePiece) {
  EXPECT_THAT(ids(training_nodes({path(0, "0cccc", {4})})), ElementsAre("0cccc"));
}

TEST(TrainingNodes, RunsThatBeginAlikePartWhereTheyDiffer) {
  const auto nodes = training_nodes({path(0, "0cccc", {4}), path(1, "0ccii", {4})});
  EXPECT_THAT(ids(nodes), ElementsAre("0cc", "0cccc", "bank", "0ccii"));
  EXPECT_THAT(nodes[0].needs, IsEmpty());
  EXPECT_THAT(nodes[1].needs, ElementsAre("0cc"));
  EXPECT_THAT(nodes[3].needs, ElementsAre("0cc", "bank"));
  EXPECT_EQ(nodes[3].iteration, 4u);
}

TEST(TrainingNodes, EqualRunsAreOne) {
  EXPECT_THAT(ids(training_nodes({path(0, "0ccc", {3}), path(1, "0ccc", {3})})), ElementsAre("0ccc"));
}

TEST(TrainingNodes, AreCutWhereAStateIsAskedFor) {
  EXPECT_THAT(ids(training_nodes({path(0, "0cccc", {1, 3})})), ElementsAre("0c", "0ccc"));
}

TEST(TrainingNodes, AContinuationNeedsTheStateItBeginsWith) {
  RunPath continued = path(0, "xii", {2});
  continued.from = "0cc";
  const auto nodes = training_nodes({continued, path(1, "0cccc", {2, 4})});
  EXPECT_THAT(ids(nodes), ElementsAre("bank", "0cc", "xii", "0cccc")) << "whatever the order of the methods";
  EXPECT_THAT(nodes[2].needs, ElementsAre("0cc", "bank"));
}

TEST(TrainingNodes, AnOnsetScanSharesEveryBeginning) {
  std::vector<RunPath> paths;
  for (size_t onset = 0; onset <= 4; ++onset)
    paths.push_back(path(onset, "0" + std::string(onset, 'c') + std::string(4 - onset, 'i'), {4}));
  size_t iterations = 0;
  for (const Node& node : training_nodes(paths)) {
    if (node.kind != NodeKind::training) continue;
    size_t begin = 0;
    for (const std::string& need : node.needs)
      if (need != "bank") begin = need.size() - 1;
    iterations += node.id.size() - 1 - begin;
  }
  EXPECT_EQ(iterations, 4u + 4 + 3 + 2 + 1) << "five runs of four iterations without sharing are 20";
}

Graph chain() {
  Graph graph;
  graph.nodes = {{.id = "a", .label = "a"},
                 {.id = "b", .label = "b", .needs = {"a"}},
                 {.id = "c", .label = "c", .needs = {"a"}},
                 {.id = "d", .label = "d", .needs = {"b"}}};
  return graph;
}

TEST(Graph, KnowsWhatDependsOnANodeAndNothingElse) {
  EXPECT_THAT(chain().dependents("b"), ElementsAre("d"));
  EXPECT_THAT(chain().dependents("a"), ElementsAre("b", "c", "d"));
  EXPECT_THAT(chain().dependents("c"), IsEmpty());
  EXPECT_THAT(chain().ancestors("d"), UnorderedElementsAre("a", "b", "d"));
}

std::string spelled(const std::vector<const Node*>& nodes) {
  std::string result;
  for (const Node* node : nodes) result += node->id;
  return result;
}

TEST(Graph, OffersWhatCanBeMadeNow) {
  const Graph graph = chain();
  const auto states = [&](const std::string& done) {
    const NodeStates found =
        look_at_nodes(graph, [&](const Node& n) { return done.find(n.id) != std::string::npos; });
    return spelled(found.done) + "|" + spelled(found.ready) + "|" + spelled(found.waiting);
  };
  EXPECT_EQ(states(""), "|a|bcd");
  EXPECT_EQ(states("a"), "a|bc|d");
  EXPECT_EQ(states("ab"), "ab|cd|");
  EXPECT_EQ(states("abcd"), "abcd||");
}

TEST(Graph, WhatIsLeftCanBeMadeThoughOthersFinishNodesMeanwhile) {
  const Graph graph = chain();
  for (size_t finished_behind = 0; finished_behind < graph.nodes.size(); ++finished_behind) {
    std::map<std::string, int> asked;
    size_t looks = 0;
    const NodeStates found = look_at_nodes(graph, [&](const Node& node) {
      ++asked[node.id];
      return looks++ > finished_behind;  // from then on everything is done
    });
    EXPECT_FALSE(found.ready.empty()) << "or nobody would seem to work on it, behind " << finished_behind;
    for (const auto& [id, times] : asked) EXPECT_EQ(times, 1) << id;
  }
}

std::string error_of(const Graph& graph) {
  try {
    graph.check();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Graph, RefusesNeedsThatAreNotMadeBeforeTheyAreNeeded) {
  EXPECT_EQ(error_of(chain()), "");
  Graph graph = chain();
  graph.nodes[1].needs = {"x"};
  EXPECT_THAT(error_of(graph), HasSubstr("b needs x, which is not made"));
  graph = chain();
  graph.nodes[0].needs = {"d"};
  EXPECT_THAT(error_of(graph), HasSubstr("a needs d, which is made from it"));
  graph = chain();
  graph.nodes[3].id = "b";
  EXPECT_THAT(error_of(graph), HasSubstr("is there twice"));
}

}  // namespace
}  // namespace ropd::study
