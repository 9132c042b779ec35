#include "study/graph_state.h"

#include "study/claim.h"

namespace ropd::study {

io::StudyGraph graph_state(const StudyFile& file, const Plan& plan, const Store& store) {
  io::StudyGraph graph{.name = file.config.name, .is_complete = plan.is_complete(), .nodes = {}};
  for (const Node& node : plan.graph.nodes) {
    const bool is_done = store.is_done(node);
    graph.nodes.push_back({.id = node.id,
                           .kind = kind_name(node.kind),
                           .label = node.label,
                           .needs = node.needs,
                           .is_done = is_done,
                           .worker = is_done ? std::nullopt : claim_holder(store.claims(), node.id)});
  }
  return graph;
}

void write_graph_state(const StudyFile& file, const Plan& plan, const Store& store) {
  io::write_graph(store.root() / (file.config.name + io::kGraphEnding), graph_state(file, plan, store));
}

}  // namespace ropd::study
