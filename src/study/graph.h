// The graph of a study's work, by content. Pure: nothing here trains or touches a disk.
// Paths of runs that begin alike meet in the same states; a piece of training ends where a state is asked for
// or where paths part. A node needs the nodes it is made from; its id is the identity of what it makes, so
// equal parts of different runs and studies are one node.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ropd::study {

enum class NodeKind { bank, training, evaluation, prefixes, diagnosis };
std::string kind_name(NodeKind kind);

struct Node {
  std::string id;
  NodeKind kind = NodeKind::training;
  std::string label;                     // for people: training of fixed, order 1, to iteration 15
  std::vector<std::string> needs;        // ids
  size_t run = 0;                        // whose settings it is made with (one of those that share it)
  uint64_t iteration = 0;                // training: its end; others: of the state they look at
  std::optional<std::string> state;      // of an evaluation, prefixes or diagnosis; none: a model as it came
  size_t item = 0;                       // which evaluation or diagnosis of the study
  size_t source = 0, student = 0;        // of a diagnosis; source of prefixes
  bool is_teacher = false;               // of an evaluation without state
  std::optional<std::string> reference;  // of a diagnosis: state that likelihood changes are counted from
  std::string prefixes;                  // of a diagnosis: id
};

// A run as far as its sources are known.
struct RunPath {
  size_t run = 0;
  std::string label;
  std::vector<std::string> states;        // [known iterations + 1], from state 0
  std::vector<uint64_t> wanted;           // iterations whose state something needs, ascending
  std::string bank;                       // id of its initial bank; empty = none
  std::vector<uint64_t> bank_iterations;  // iterations that draw on it
  std::string from;                       // id of the state it continues; empty = none
};

// The pieces of training and the banks that all paths need, in an order in which they can be made.
std::vector<Node> training_nodes(const std::vector<RunPath>& paths);

struct Graph {
  std::vector<Node> nodes;  // every node behind those it needs
  const Node* find(const std::string& id) const;
  // The node and all that it is made from, directly or not.
  std::vector<std::string> ancestors(const std::string& id) const;
  // All that is made from it, directly or not.
  std::vector<std::string> dependents(const std::string& id) const;
  // Fails naming a need that is no node, a node that is there twice, or a circle.
  void check() const;
};

// Nodes by what can be done about them now. Of each it is asked once whether it is done: other processes finish
// nodes meanwhile, and one that was left at a first look and done at a second would seem to be in nobody's hands.
struct NodeStates {
  std::vector<const Node*> done, ready, waiting;  // ready: all they need is done
};
NodeStates look_at_nodes(const Graph& graph, const std::function<bool(const Node&)>& is_done);

}  // namespace ropd::study
