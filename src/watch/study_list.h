// The studies below a folder as an onlooker sees them: NAME.graph.json (io/graph_file.h), judged by the process table.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "io/graph_file.h"

namespace ropd::watch {

enum class NodeState {
  done,
  working,
  dead,  // claimed by a process that is gone
  open
};
const char* state_name(NodeState state);

// A process of another machine is taken to be alive: only its own machine knows.
NodeState judge_node(const io::GraphNode& node);

struct StudySummary {
  std::string id;  // path of the file below the folder, without its ending
  Path path;       // the file
  std::optional<io::StudyGraph> graph;
  std::vector<NodeState> states;  // [nodes]
  std::string stamp;              // changes when the file does
  uint64_t version = 0;           // RunList::version() of its last change
};

// Looks again; true when something changed. The version is the caller's.
bool look_at(StudySummary& study);

// For people: the run that a piece of training is made in, "" when the study knows none of this folder.
std::string label_of_run(const StudySummary& study, const Path& run);

// What the list shows of a study: counts of nodes by state.
Json study_summary_json(const StudySummary& study);
// All its nodes, every text fit to be shown. `run_of` gives the id of the run in a folder, or "".
Json study_json(const StudySummary& study, const std::function<std::string(const Path&)>& run_of);

}  // namespace ropd::watch
