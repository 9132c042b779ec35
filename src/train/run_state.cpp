#include "train/run_state.h"

#include "base/error.h"
#include "base/json.h"

namespace ropd::train {
namespace {

// 1: without bank_fingerprints; the trigger's row stood in `curriculum`, the learner's scalars in `updates`
// and
//    `trigger`.
// 2: every part under its own name.
constexpr int kFormat = 2;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
std::optional<T> optional_of(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

nlohmann::ordered_json statistics_json(const curriculum::StatisticsState& statistics) {
  return {{"minibatches", statistics.minibatches},
          {"squared_deviations", statistics.squared_deviations},
          {"previous_within", or_null(statistics.previous_within)}};
}

curriculum::StatisticsState parse_statistics(const Json& json) {
  return {.minibatches = json.at("minibatches"),
          .squared_deviations = json.at("squared_deviations"),
          .previous_within = optional_of<double>(json.at("previous_within"))};
}

nlohmann::ordered_json watched_json(const std::vector<curriculum::WatchedState>& watched) {
  auto list = nlohmann::ordered_json::array();
  for (const curriculum::WatchedState& one : watched)
    list.push_back({{"trigger", one.trigger}, {"tau", or_null(one.tau)}});
  return list;
}

// Absent in files of earlier versions.
std::vector<curriculum::WatchedState> parse_watched(const Json& root) {
  std::vector<curriculum::WatchedState> watched;
  if (root.contains("watched"))
    for (const Json& one : root.at("watched"))
      watched.push_back({one.at("trigger"), optional_of<uint64_t>(one.at("tau"))});
  return watched;
}

curriculum::CurriculumState parse_curriculum(const Json& json) {
  return {.closed_iterations = json.at("closed_iterations"),
          .stage_begins = json.at("stage_begins").get<std::vector<uint64_t>>(),
          .tau = optional_of<uint64_t>(json.at("tau")),
          .trigger = {}};
}

}  // namespace

std::string write_run_state(const SavedRun& saved) {
  nlohmann::ordered_json learner = {{"updates", saved.learner.updates}, {"statistics", nullptr}};
  if (saved.learner.statistics) learner["statistics"] = statistics_json(*saved.learner.statistics);
  // Doubles are written in the shortest form that reads back exactly.
  const nlohmann::ordered_json json = {
      {"format", kFormat},
      {"step", saved.run.step},
      {"minibatches", saved.minibatches},
      {"skipped_steps", saved.run.skipped_steps},
      {"skipped_in_a_row", saved.run.skipped_in_a_row},
      {"next_request", saved.supply.next_request},
      {"consumed", saved.supply.consumed},
      {"rounds", saved.supply.rounds},
      {"curriculum",
       {{"closed_iterations", saved.curriculum.closed_iterations},
        {"stage_begins", saved.curriculum.stage_begins},
        {"tau", or_null(saved.curriculum.tau)}}},
      {"watched", watched_json(saved.curriculum.watched)},
      {"trigger", saved.curriculum.trigger},
      {"learner", learner},
      {"bank_positions", saved.supply.bank_positions},
      {"bank_fingerprints", saved.supply.bank_fingerprints},
      {"fingerprints", saved.run.fingerprints},
      {"queries", saved.supply.queries},
  };
  return json.dump(1) + "\n";
}

SavedRun parse_run_state(std::string_view text, std::string_view where) {
  const Json root = parse_json(text, where);
  try {
    const Json& format = root.at("format");
    if (format != 1 && format != kFormat)
      fail(where, ": format ", format.dump(), ", this program reads 1 to ", kFormat,
           " (made by a newer version?)");
    SavedRun saved;
    saved.run.step = root.at("step");
    saved.minibatches = root.at("minibatches");
    saved.run.skipped_steps = root.at("skipped_steps");
    saved.run.skipped_in_a_row = root.at("skipped_in_a_row");
    saved.run.fingerprints = root.at("fingerprints").get<std::map<std::string, std::string>>();
    saved.supply.next_request = root.at("next_request");
    saved.supply.consumed = root.at("consumed");
    saved.supply.rounds = root.at("rounds");
    saved.supply.queries = root.at("queries").get<std::set<std::string>>();
    saved.supply.bank_positions = root.at("bank_positions").get<std::map<std::string, uint64_t>>();
    saved.curriculum = parse_curriculum(root.at("curriculum"));
    if (format == 1) {
      saved.curriculum.trigger = {{"consecutive", root.at("curriculum").at("consecutive").get<uint64_t>()}};
      saved.learner = {.updates = root.at("updates"), .statistics = parse_statistics(root.at("trigger"))};
      return saved;
    }
    saved.curriculum.trigger = root.at("trigger");
    saved.curriculum.watched = parse_watched(root);
    const Json& learner = root.at("learner");
    saved.learner.updates = learner.at("updates");
    if (!learner.at("statistics").is_null())
      saved.learner.statistics = parse_statistics(learner.at("statistics"));
    saved.supply.bank_fingerprints = root.at("bank_fingerprints").get<std::map<std::string, std::string>>();
    return saved;
  } catch (const Json::exception& error) {
    fail(where, ": not the state of a run: ", error.what());
  }
}

SavedRun read_run_state(const Path& checkpoint) {
  const Path path = checkpoint / "state.json";
  return parse_run_state(read_file(path), path.string());
}

void check_fingerprints(const RunState& state, const std::map<std::string, std::string>& now) {
  for (const auto& [name, fingerprint] : now) {
    const auto found = state.fingerprints.find(name);
    if (found != state.fingerprints.end() && found->second != fingerprint)
      fail(name, ": changed since the run began (SHA-256 ", fingerprint.substr(0, 12), ", was ",
           found->second.substr(0, 12), "); restore it, or start a new run");
  }
}

}  // namespace ropd::train
