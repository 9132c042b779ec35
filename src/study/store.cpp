#include "study/store.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/sealed_json.h"

namespace ropd::study {
namespace {

constexpr int kFormat = 1;

}  // namespace

std::map<std::string, FoundState> read_states(const Path& run) {
  std::map<std::string, FoundState> states;
  const Path path = run / "states.json";
  if (!std::filesystem::exists(path)) return states;
  const Json json = unsealed(parse_json(read_file(path, 1 << 24), path.string()), path.string());
  try {
    if (json.at("format") != kFormat)
      fail(path.string(), ": format ", json.at("format").dump(), ", this program reads ", kFormat);
    for (const Json& item : json.at("states"))
      states.emplace(item.at("state").get<std::string>(),
                     FoundState{.run = run,
                                .iteration = item.at("iteration").get<uint64_t>(),
                                .checkpoint = run / "checkpoints" /
                                              fmt::format("step-{:05}", item.at("step").get<uint64_t>())});
  } catch (const Json::exception& error) {
    fail(path.string(), ": not the states of a run: ", error.what());
  }
  return states;
}

void Store::refresh() {
  states_.clear();
  if (!std::filesystem::is_directory(root_ / "runs")) return;
  for (const auto& entry : std::filesystem::directory_iterator(root_ / "runs"))
    for (auto& [state, found] : read_states(entry.path())) states_.emplace(state, std::move(found));
}

std::optional<FoundState> Store::find_history(const std::string& state) const {
  const auto found = states_.find(state);
  if (found == states_.end()) return std::nullopt;
  return found->second;
}

std::optional<FoundState> Store::find_state(const std::string& state) const {
  // By the order of their folders' names, so that every process takes the same one.
  std::optional<FoundState> best;
  const auto [begin, end] = states_.equal_range(state);
  for (auto at = begin; at != end; ++at)
    if ((!best || at->second.run < best->run) &&
        std::filesystem::exists(at->second.checkpoint / "MANIFEST.json"))
      best = at->second;
  return best;
}

void Store::add_run(const std::string& id, const std::vector<std::string>& states,
                    const std::vector<uint64_t>& steps) const {
  Json list = Json::array();
  for (size_t k = 1; k < states.size(); ++k)
    list.push_back({{"iteration", k}, {"step", steps[k]}, {"state", states[k]}});
  write_file_atomically(run(id) / "states.json",
                        sealed({{"format", kFormat}, {"states", list}}).dump(1) + "\n");
}

bool Store::is_done(const Node& node) const {
  switch (node.kind) {
    case NodeKind::training:
      return find_state(node.id).has_value();
    case NodeKind::bank:
      return std::filesystem::exists(bank(node.id));
    case NodeKind::prefixes:
      return std::filesystem::exists(prefixes(node.id));
    case NodeKind::evaluation:
      return std::filesystem::exists(evaluation(node.id) / "summary.json");
    case NodeKind::diagnosis:
      break;
  }
  return std::filesystem::exists(diagnosis(node.id));
}

void Store::add_time(const Node& node, double seconds, double processor_seconds) const {
  std::filesystem::create_directories(root_ / "times");
  write_file_atomically(root_ / "times" / (node.id + ".json"), Json{{"kind", kind_name(node.kind)},
                                                                    {"label", node.label},
                                                                    {"seconds", seconds},
                                                                    {"processor_seconds", processor_seconds}}
                                                                       .dump() +
                                                                   "\n");
}

std::optional<Store::Time> Store::time_of(const std::string& id) const {
  const Path path = root_ / "times" / (id + ".json");
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json json = parse_json(read_file(path, 1 << 16), path.string());
  try {
    return Time{json.at("seconds").get<double>(), json.at("processor_seconds").get<double>()};
  } catch (const Json::exception& error) {
    fail(path.string(), ": not the time of a node: ", error.what());
  }
}

}  // namespace ropd::study
