// NAME.graph.json of a study: its nodes and where each stands. For onlookers only (`ropd watch`): written by whichever
// process works on the study, replaced whole but not made durable; nothing of a study depends on it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "io/progress_file.h"

namespace ropd::io {

struct GraphNode {
  std::string id;
  std::string kind;                // bank, training, evaluation, prefixes, diagnosis
  std::string label;               // for people
  std::vector<std::string> needs;  // ids of nodes before it
  bool is_done = false;
  std::optional<ProcessIdentity> worker;  // who has claimed it
};

struct StudyGraph {
  std::string name;
  bool is_complete = true;  // false: more nodes appear when tau is known
  std::vector<GraphNode> nodes;
};

inline constexpr const char* kGraphEnding = ".graph.json";

std::string graph_json(const StudyGraph& graph);
// A disk that refuses it does not stop a study.
void write_graph(const Path& path, const StudyGraph& graph);
// Nothing when there is no such file, or none that can be read as one: it may come from a stranger. A need is the id of
// a node listed before.
std::optional<StudyGraph> read_graph(const Path& path);

}  // namespace ropd::io
