#include "report/run_data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/yaml.h"
#include "io/jsonl.h"
#include "io/metrics_file.h"

namespace ropd::report {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr uint64_t kMaxDocumentBytes = uint64_t{64} << 20;
constexpr size_t kMaxSettings = 4000;
constexpr int kMaxDepth = 24;

double number_at(const Json& object, const char* name, const std::string& where) {
  const auto found = object.find(name);  // end() for what is no object
  if (found == object.end() || !found->is_number())
    fail(where, ": \"", name, "\" is missing or not a number (written by another version?)");
  return found->get<double>();
}

const Json& member_at(const Json& object, const char* name, Json::value_t type, const char* expected,
                      const std::string& where) {
  if (!object.is_object())
    fail(where, ": expected an object around \"", name, "\" (written by another version?)");
  const auto found = object.find(name);
  if (found == object.end() || found->type() != type)
    fail(where, ": \"", name, "\" is missing or not ", expected, " (written by another version?)");
  return *found;
}

const Json& list_at(const Json& object, const char* name, const std::string& where) {
  return member_at(object, name, Json::value_t::array, "a list", where);
}
const Json& object_at(const Json& object, const char* name, const std::string& where) {
  return member_at(object, name, Json::value_t::object, "an object", where);
}
void add_setting(Settings& settings, const std::string& key, std::string value) {
  if (settings.size() < kMaxSettings) settings.emplace_back(key, std::move(value));
}

std::string joined(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : prefix + "." + key;
}

void flatten(Settings& settings, const std::string& prefix, const Json& value, int depth) {
  if (depth > kMaxDepth || settings.size() >= kMaxSettings) return;
  if (value.is_object())
    for (const auto& [key, item] : value.items()) flatten(settings, joined(prefix, key), item, depth + 1);
  else
    add_setting(settings, prefix,
                value.is_string() ? value.get<std::string>()
                                  : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void flatten(Settings& settings, const std::string& prefix, const ConfigNode& node) {
  using Kind = ConfigNode::Kind;
  if (settings.size() >= kMaxSettings) return;
  const bool is_flat = std::all_of(node.items.begin(), node.items.end(), [](const ConfigNode& item) {
    return item.kind == Kind::scalar || item.kind == Kind::null;
  });
  const auto text = [](const ConfigNode& item) { return item.kind == Kind::null ? "null" : item.scalar; };
  if (node.kind == Kind::map) {
    for (const auto& item : node.items) flatten(settings, joined(prefix, item.name), item);
  } else if (node.kind == Kind::list && is_flat) {
    std::string list;
    for (const auto& item : node.items) list += (list.empty() ? "" : ", ") + text(item);
    add_setting(settings, prefix, "[" + list + "]");
  } else if (node.kind == Kind::list) {
    size_t index = 0;
    for (const auto& item : node.items) flatten(settings, prefix + "[" + std::to_string(index++) + "]", item);
  } else {
    add_setting(settings, prefix, text(node));
  }
}

Json read_json(const Path& path) { return parse_json(read_file(path, kMaxDocumentBytes), path.string()); }

std::vector<Path> sorted_entries(const Path& directory) {
  std::vector<Path> entries;
  if (std::filesystem::is_directory(directory))
    for (const auto& entry : std::filesystem::directory_iterator(directory)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

PrefixResult read_prefixes(const Path& path);

std::string value_of(const Settings& settings, const std::string& key) {
  for (const auto& [name, value] : settings)
    if (name == key) return value;
  return "";
}

void add_evaluation(RunData& run, const Path& directory) {
  if (!std::filesystem::exists(directory / "summary.json")) return;
  EvaluationData& evaluation = run.evaluations.emplace_back();
  evaluation.name = directory.filename().string();
  const std::string& name = evaluation.name;
  if (name.starts_with("step-") && name.size() > 5 && name.size() < 20 &&
      name.find_first_not_of("0123456789", 5) == std::string::npos)
    evaluation.step = std::stoull(name.substr(5));
  evaluation.summary = stats::read_summary(directory);
  const Path responses = directory / "responses.jsonl";
  if (std::filesystem::exists(responses)) evaluation.responses = responses;
  if (const Path file = directory / "generation.json"; std::filesystem::exists(file))
    flatten(evaluation.generation, "", read_json(file), 0);
  if (std::filesystem::exists(directory / "samples.jsonl")) evaluation.samples = directory / "samples.jsonl";
}

void find_evaluations(RunData& run) {
  add_evaluation(run, run.path);
  for (const Path& directory : sorted_entries(run.path / "eval")) add_evaluation(run, directory);
}

void find_rollouts(RunData& run) {
  for (const Path& file : sorted_entries(run.path / "rollouts")) {
    const std::string name = file.filename().string();
    if (!name.starts_with("iter-") || file.extension() != ".jsonl") continue;
    const uint64_t iteration = std::strtoull(name.c_str() + 5, nullptr, 10);
    const bool is_sampled =
        std::any_of(run.iterations.begin(), run.iterations.end(), [&](const IterationRecord& record) {
          return record.iteration == iteration && record.source == "current";
        });
    if (!is_sampled) continue;
    if (run.first_rollouts.empty()) run.first_rollouts = file;
    run.last_rollouts = file;
  }
  for (const Path& file : sorted_entries(run.path / "samples")) {
    if (file.extension() != ".jsonl") continue;
    if (run.first_samples.empty()) run.first_samples = file;
    run.last_samples = file;
  }
  const Path bank = run.path / "banks" / "initial.jsonl";
  if (std::filesystem::exists(bank)) run.first_rollouts = bank;
}

// A step of supervised fine-tuning as a point of the training curves.
IterationRecord fine_tuning_record(const Json& row, const std::string& where) {
  IterationRecord record;
  const double step = number_at(row, "step", where);
  if (!(step >= 0 && step <= 0x1p53)) fail(where, ": step ", step, ", expected the number of a step");
  record.step = record.iteration = std::max<uint64_t>(1, static_cast<uint64_t>(step));
  record.source = "pairs";
  record.loss = number_at(row, "loss", where);
  record.grad_norm = number_at(row, "grad_norm", where);
  record.truncated = std::numeric_limits<double>::quiet_NaN();  // nothing was sampled
  return record;
}

std::vector<IterationRecord> read_iterations(const Path& file) {
  std::vector<IterationRecord> steps;
  io::JsonlReader reader(file);
  const auto first = reader.next();
  // The lines of `ropd train` have a kind; all else is for read_metrics to judge.
  if (!first || first->text.find("\"kind\"") != std::string_view::npos)
    return io::read_metrics(file).iterations;
  for (auto line = first; line; line = reader.next()) {
    const std::string where = reader.where(line->number);
    steps.push_back(fine_tuning_record(parse_json(line->text, where), where));
  }
  return steps;
}

bool holds_a_run(const Path& directory) {
  for (const char* name : {"metrics.jsonl", "config.yaml", "summary.json", "diagnosis.json", "eval"})
    if (std::filesystem::exists(directory / name)) return true;
  return false;
}

void find_runs(std::vector<Path>& found, const Path& directory, int depth) {
  constexpr int kMaxLevels = 3;
  constexpr size_t kMaxRuns = 256;
  if (found.size() >= kMaxRuns) return;
  if (holds_a_run(directory)) {
    found.push_back(directory);
    return;
  }
  if (depth == kMaxLevels) return;
  for (const Path& entry : sorted_entries(directory))
    if (std::filesystem::is_directory(entry) && !std::filesystem::is_symlink(entry))
      find_runs(found, entry, depth + 1);
}

}  // namespace

std::optional<uint64_t> RunData::tau() const {
  return iterations.empty() ? std::nullopt : iterations.back().trigger.tau;
}

std::string RunData::setting(const std::string& key) const { return value_of(config, key); }
std::string EvaluationData::setting(const std::string& key) const { return value_of(generation, key); }

std::string RunData::order() const {
  const std::string order = setting("data.order_seed"), seed = setting("seed");
  return order.empty() && seed.empty() ? "" : "order " + order + ", seed " + seed;
}

RunData read_run(const std::string& argument) {
  RunData run;
  const size_t equals = argument.find('=');
  // A folder whose own name holds '=' is meant literally.
  const bool is_named = equals != std::string::npos && !std::filesystem::exists(argument);
  run.path = is_named ? argument.substr(equals + 1) : argument;
  if (!std::filesystem::is_directory(run.path)) fail(run.path.string(), ": no such run directory");
  const Path normal = std::filesystem::absolute(run.path).lexically_normal();
  run.label = is_named                    ? argument.substr(0, equals)
              : normal.filename().empty() ? normal.parent_path().filename().string()
                                          : normal.filename().string();
  if (const Path file = run.path / "metrics.jsonl"; std::filesystem::exists(file))
    run.iterations = read_iterations(file);
  if (const Path file = run.path / "config.yaml"; std::filesystem::exists(file)) {
    run.config_text = read_file(file, uint64_t{1} << 20);
    flatten(run.config, "", parse_yaml_document(run.config_text, file.string()));
  }
  if (const Path file = run.path / "environment.json"; std::filesystem::exists(file))
    flatten(run.environment, "", read_json(file), 0);
  find_evaluations(run);
  if (const Path file = run.path / "diagnostics.json"; std::filesystem::exists(file))
    run.prefixes = read_prefixes(file);
  if (const Path file = run.path / "diagnosis.json"; std::filesystem::exists(file))
    run.diagnosis = read_diagnosis(file);
  find_rollouts(run);
  if (!run.is_trained() && run.evaluations.empty() && run.config.empty() && !run.diagnosis)
    fail(run.path.string(),
         ": no metrics.jsonl, config.yaml, summary.json, eval/*/summary.json or diagnosis.json in it (not a "
         "run "
         "directory?)");
  return run;
}

std::vector<std::string> expand_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> expanded;
  for (const std::string& argument : arguments) {
    std::vector<Path> found;
    if (std::filesystem::is_directory(argument)) find_runs(found, argument, 0);
    if (found.empty()) expanded.push_back(argument);  // NAME=DIR, or an error that read_run names
    for (const Path& path : found) expanded.push_back(path.string());
  }
  return expanded;
}

namespace {

PrefixResult read_prefixes(const Path& path) {
  const std::string where = path.string();
  const Json json = read_json(path);
  PrefixResult result;
  const Json& prefixes = object_at(json, "initial_prefixes", where);
  result.kl = number_at(prefixes, "kl", where);
  result.less_likely = number_at(prefixes, "less_likely", where);
  for (const Json& point : list_at(prefixes, "cumulative", where)) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number())
      fail(where, ": \"cumulative\" holds ", point.dump().substr(0, 60), ", expected [change, share]");
    result.cumulative.emplace_back(point[0].get<double>(), point[1].get<double>());
  }
  return result;
}

}  // namespace
}  // namespace ropd::report
