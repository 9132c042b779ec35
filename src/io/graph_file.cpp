#include "io/graph_file.h"

#include <signal.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/json.h"

namespace ropd::io {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr uint64_t kMaxBytes = 8 << 20;
constexpr size_t kMaxNodes = 2000;

OrderedJson node_json(const GraphNode& node) {
  OrderedJson json = {{"id", node.id},       {"kind", node.kind},    {"label", node.label},
                      {"needs", node.needs}, {"done", node.is_done}, {"worker", nullptr}};
  if (node.worker)
    json["worker"] = {
        {"host", node.worker->host}, {"pid", node.worker->pid}, {"start_ticks", node.worker->start_ticks}};
  return json;
}

GraphNode parse_node(const Json& json) {
  GraphNode node{.id = json.at("id"),
                 .kind = json.at("kind"),
                 .label = json.at("label"),
                 .needs = json.at("needs"),
                 .is_done = json.at("done"),
                 .worker = {}};
  if (const Json& worker = json.at("worker"); worker.is_object())
    node.worker = ProcessIdentity{worker.at("host"), worker.at("pid"), worker.at("start_ticks")};
  return node;
}

constexpr std::string_view kTemporary = ".tmp";

// Files beside `path` of processes that were killed while they wrote. Nothing is lost where one belongs to a
// process of another machine that lives: it writes again.
void remove_leftovers(const Path& path) {
  const std::string prefix = path.filename().string() + ".";
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(path.parent_path(), error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kTemporary)) continue;
    const std::string number =
        name.substr(prefix.size(), name.size() - std::min(name.size(), prefix.size() + kTemporary.size()));
    const bool is_number =
        !number.empty() && number.size() < 10 && number.find_first_not_of("0123456789") == std::string::npos;
    std::error_code ignored;
    if (is_number && ::kill(std::stoi(number), 0) != 0 && errno == ESRCH)
      std::filesystem::remove(entry->path(), ignored);
  }
}

}  // namespace

std::string graph_json(const StudyGraph& graph) {
  OrderedJson json = {{"format", 1}, {"name", graph.name}, {"complete", graph.is_complete}};
  json["nodes"] = OrderedJson::array();
  for (const GraphNode& node : graph.nodes) json["nodes"].push_back(node_json(node));
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

void write_graph(const Path& path, const StudyGraph& graph) {
  // Several processes may write at once: each beside, under its own number.
  Path beside = path;
  beside += "." + std::to_string(this_process().pid);
  beside += kTemporary;
  remove_leftovers(path);
  std::ofstream file(beside, std::ios::trunc);
  file << graph_json(graph) << "\n";
  file.close();
  std::error_code ignored;
  if (file) std::filesystem::rename(beside, path, ignored);
}

std::optional<StudyGraph> read_graph(const Path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  try {
    const Json json = parse_json(read_file(path, kMaxBytes), path.string(), 8);
    StudyGraph graph{.name = json.at("name"), .is_complete = json.at("complete"), .nodes = {}};
    if (json.at("nodes").size() > kMaxNodes) return std::nullopt;
    std::set<std::string> known;
    for (const Json& entry : json.at("nodes")) {
      GraphNode node = parse_node(entry);
      for (const std::string& need : node.needs)
        if (!known.contains(need)) return std::nullopt;
      if (!known.insert(node.id).second) return std::nullopt;
      graph.nodes.push_back(std::move(node));
    }
    return graph;
  } catch (const Error&) {  // an onlooker goes on without it
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace ropd::io
