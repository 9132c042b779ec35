#include "train/run_state.h"

#include "base/error.h"
#include "base/json.h"

namespace ropd::train {
namespace {

constexpr int kFormat = 1;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
std::optional<T> optional_of(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

}  // namespace

std::string write_run_state(const RunState& state) {
  // Doubles are written in the shortest form that reads back exactly.
  const nlohmann::ordered_json json = {
      {"format", kFormat},
      {"step", state.step},
      {"minibatches", state.minibatches},
      {"updates", state.updates},
      {"next_request", state.next_request},
      {"consumed", state.consumed},
      {"rounds", state.rounds},
      {"skipped_steps", state.skipped_steps},
      {"skipped_in_a_row", state.skipped_in_a_row},
      {"first_length_mean", or_null(state.first_length_mean)},
      {"curriculum",
       {{"closed_iterations", state.curriculum.closed_iterations},
        {"stage_begins", state.curriculum.stage_begins},
        {"consecutive", state.curriculum.consecutive},
        {"tau", or_null(state.curriculum.tau)}}},
      {"trigger",
       {{"minibatches", state.trigger.minibatches},
        {"squared_deviations", state.trigger.squared_deviations},
        {"previous_within", or_null(state.trigger.previous_within)}}},
      {"bank_positions", state.bank_positions},
      {"fingerprints", state.fingerprints},
      {"queries", state.queries},
  };
  return json.dump(1) + "\n";
}

RunState parse_run_state(std::string_view json, std::string_view where) {
  const Json root = parse_json(json, where);
  try {
    if (root.at("format") != kFormat)
      fail(where, ": format ", root.at("format").dump(), ", this program reads ", kFormat,
           " (made by a newer version?)");
    const Json& curriculum = root.at("curriculum");
    const Json& trigger = root.at("trigger");
    RunState state;
    state.step = root.at("step");
    state.minibatches = root.at("minibatches");
    state.updates = root.at("updates");
    state.next_request = root.at("next_request");
    state.consumed = root.at("consumed");
    state.rounds = root.at("rounds");
    state.skipped_steps = root.at("skipped_steps");
    state.skipped_in_a_row = root.at("skipped_in_a_row");
    state.first_length_mean = optional_of<double>(root.at("first_length_mean"));
    state.curriculum.closed_iterations = curriculum.at("closed_iterations");
    state.curriculum.stage_begins = curriculum.at("stage_begins").get<std::vector<uint64_t>>();
    state.curriculum.consecutive = curriculum.at("consecutive");
    state.curriculum.tau = optional_of<uint64_t>(curriculum.at("tau"));
    state.trigger.minibatches = trigger.at("minibatches");
    state.trigger.squared_deviations = trigger.at("squared_deviations");
    state.trigger.previous_within = optional_of<double>(trigger.at("previous_within"));
    state.bank_positions = root.at("bank_positions").get<std::map<std::string, uint64_t>>();
    state.fingerprints = root.at("fingerprints").get<std::map<std::string, std::string>>();
    state.queries = root.at("queries").get<std::set<std::string>>();
    return state;
  } catch (const Json::exception& error) {
    fail(where, ": not the state of a run: ", error.what());
  }
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
