#include "watch/study_list.h"

#include <algorithm>

#include "base/visible_text.h"
#include "watch/file_stamp.h"

namespace ropd::watch {
namespace {

constexpr size_t kMaxName = 200;

}  // namespace

const char* state_name(NodeState state) {
  switch (state) {
    case NodeState::done:
      return "done";
    case NodeState::working:
      return "working";
    case NodeState::dead:
      return "dead";
    case NodeState::open:
      break;
  }
  return "open";
}

NodeState judge_node(const io::GraphNode& node) {
  if (node.is_done) return NodeState::done;
  if (!node.worker) return NodeState::open;
  return io::is_alive(*node.worker).value_or(true) ? NodeState::working : NodeState::dead;
}

bool look_at(StudySummary& study) {
  const std::string stamp = file_stamp(study.path);
  const bool is_new = study.version == 0 || stamp != study.stamp;
  if (is_new) study.graph = io::read_graph(study.path);
  study.stamp = stamp;
  std::vector<NodeState> states;
  if (study.graph) std::ranges::transform(study.graph->nodes, std::back_inserter(states), judge_node);
  const bool has_changed = is_new || states != study.states;
  study.states = std::move(states);
  return has_changed;
}

std::string label_of_run(const StudySummary& study, const Path& run) {
  if (!study.graph || run.parent_path() != study.path.parent_path() / "runs") return "";
  const auto found = std::ranges::find(study.graph->nodes, run.filename().string(), &io::GraphNode::id);
  if (found == study.graph->nodes.end()) return "";
  // Every run is a training; in a chart's margin the method must come first.
  constexpr std::string_view kObvious = "training of ";
  return found->label.starts_with(kObvious) ? found->label.substr(kObvious.size()) : found->label;
}

Json study_summary_json(const StudySummary& study) {
  const auto count = [&](NodeState state) { return std::ranges::count(study.states, state); };
  const std::string name = study.path.filename().string();
  return {{"id", study.id},
          {"name", visible_text(study.graph ? study.graph->name : name, kMaxName)},
          {"readable", study.graph.has_value()},
          {"complete", study.graph && study.graph->is_complete},
          {"nodes", study.states.size()},
          {"done", count(NodeState::done)},
          {"working", count(NodeState::working)},
          {"dead", count(NodeState::dead)},
          {"version", study.version}};
}

Json study_json(const StudySummary& study, const std::function<std::string(const Path&)>& run_of) {
  Json json = study_summary_json(study);
  json["nodes"] = Json::array();
  if (!study.graph) return json;
  for (size_t i = 0; i < study.graph->nodes.size(); ++i) {
    const io::GraphNode& node = study.graph->nodes[i];
    Json needs = Json::array();
    for (const std::string& need : node.needs)
      needs.push_back(std::ranges::find(study.graph->nodes, need, &io::GraphNode::id) -
                      study.graph->nodes.begin());
    json["nodes"].push_back({{"kind", visible_text(node.kind, kMaxName)},
                             {"label", visible_text(node.label, kMaxName)},
                             {"needs", std::move(needs)},
                             {"state", state_name(study.states[i])},
                             {"worker", node.worker ? visible_text(node.worker->host, kMaxName) +
                                                          ", process " + std::to_string(node.worker->pid)
                                                    : ""},
                             {"run", run_of(study.path.parent_path() / "runs" / node.id)}});
  }
  return json;
}

}  // namespace ropd::watch
