#include "study/graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace ropd::study {
namespace {

// States at which a piece of training ends: those asked for, and those behind which paths part.
std::set<std::string> cutting_points(const std::vector<RunPath>& paths) {
  std::set<std::string> points;
  std::map<std::string, std::set<std::string>> next;
  for (const RunPath& path : paths) {
    if (path.wanted.empty()) continue;
    for (const uint64_t iteration : path.wanted) points.insert(path.states[iteration]);
    for (uint64_t k = 0; k < path.wanted.back(); ++k) next[path.states[k]].insert(path.states[k + 1]);
  }
  for (const auto& [state, following] : next)
    if (following.size() > 1) points.insert(state);
  return points;
}

Node training_node(const RunPath& path, uint64_t begin, uint64_t end) {
  Node node{.id = path.states[end], .kind = NodeKind::training, .run = path.run, .iteration = end};
  node.label = "training of " + path.label + " to iteration " + std::to_string(end);
  if (begin > 0)
    node.needs.push_back(path.states[begin]);
  else if (!path.from.empty())
    node.needs.push_back(path.from);
  const bool draws_on_bank = std::any_of(path.bank_iterations.begin(), path.bank_iterations.end(),
                                         [&](uint64_t k) { return k > begin && k <= end; });
  if (draws_on_bank) node.needs.push_back(path.bank);
  return node;
}

}  // namespace

std::string kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::bank:
      return "bank";
    case NodeKind::training:
      return "training";
    case NodeKind::evaluation:
      return "evaluation";
    case NodeKind::prefixes:
      return "prefixes";
    case NodeKind::diagnosis:
      break;
  }
  return "diagnosis";
}

std::vector<Node> training_nodes(const std::vector<RunPath>& paths) {
  const auto points = cutting_points(paths);
  std::vector<Node> nodes;
  std::set<std::string> made;
  for (const RunPath& path : paths) {
    if (path.wanted.empty()) continue;
    const bool needs_bank = std::any_of(path.bank_iterations.begin(), path.bank_iterations.end(),
                                        [&](uint64_t k) { return k <= path.wanted.back(); });
    if (needs_bank && made.insert(path.bank).second)
      nodes.push_back({.id = path.bank,
                       .kind = NodeKind::bank,
                       .label = "initial bank of " + path.label,
                       .run = path.run});
    uint64_t begin = 0;
    for (uint64_t k = 1; k <= path.wanted.back(); ++k) {
      if (!points.contains(path.states[k])) continue;
      if (made.insert(path.states[k]).second) nodes.push_back(training_node(path, begin, k));
      begin = k;
    }
  }
  // A run may continue the state of a method that is listed behind it.
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < nodes.size(); ++i) index[nodes[i].id] = i;
  std::vector<Node> ordered;
  std::set<std::string> placed, open;
  const std::function<void(size_t)> place = [&](size_t i) {
    if (placed.contains(nodes[i].id)) return;
    if (!open.insert(nodes[i].id).second) fail("study: ", nodes[i].label, " needs itself");
    for (const std::string& need : nodes[i].needs)
      if (index.contains(need)) place(index[need]);
    placed.insert(nodes[i].id);
    ordered.push_back(nodes[i]);
  };
  for (size_t i = 0; i < nodes.size(); ++i) place(i);
  return ordered;
}

const Node* Graph::find(const std::string& id) const {
  for (const Node& node : nodes)
    if (node.id == id) return &node;
  return nullptr;
}

std::vector<std::string> Graph::ancestors(const std::string& id) const {
  std::set<std::string> wanted = {id};
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    if (wanted.contains(node->id)) wanted.insert(node->needs.begin(), node->needs.end());
  return {wanted.begin(), wanted.end()};
}

std::vector<std::string> Graph::dependents(const std::string& id) const {
  std::set<std::string> reached = {id};
  std::vector<std::string> result;
  for (const Node& node : nodes) {
    const bool depends = std::any_of(node.needs.begin(), node.needs.end(),
                                     [&](const std::string& need) { return reached.contains(need); });
    if (depends && reached.insert(node.id).second) result.push_back(node.id);
  }
  return result;
}

void Graph::check() const {
  std::set<std::string> seen;
  for (const Node& node : nodes) {
    for (const std::string& need : node.needs)
      if (!seen.contains(need))
        fail("study: ", node.label, " needs ", need, ", which is ", find(need) ? "made from it" : "not made");
    if (!seen.insert(node.id).second) fail("study: ", node.label, " is there twice");
  }
}

NodeStates look_at_nodes(const Graph& graph, const std::function<bool(const Node&)>& is_done) {
  std::set<std::string> done;
  NodeStates states;
  for (const Node& node : graph.nodes) {
    if (is_done(node)) {
      done.insert(node.id);
      states.done.push_back(&node);
    } else if (std::all_of(node.needs.begin(), node.needs.end(),
                           [&](const std::string& need) { return done.contains(need); })) {
      states.ready.push_back(&node);
    } else {
      states.waiting.push_back(&node);
    }
  }
  return states;
}

}  // namespace ropd::study
