#include "study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/stop.h"
#include "eval/suite.h"
#include "io/durable_folder.h"
#include "study/claim.h"
#include "study/graph_state.h"
#include "study/seen_inputs.h"
#include "study/tables.h"

namespace ropd::study {
namespace {

constexpr std::chrono::milliseconds kWaitForOthers{500};

// The suites must be there before hours are spent.
void check_suites(const StudyConfig& config) {
  for (const EvaluationConfig& evaluation : config.evaluations)
    (void)eval::load_suite(evaluation.suite, evaluation.data);
}

}  // namespace

Study::Study(const Path& file, const std::vector<std::string>& overrides)
    : file_(load_study(file, overrides)),
      runs_(expand_runs(file_)),
      store_(file_.config.output),
      relative_costs_(file_, runs_, 1) {}

Plan Study::plan() {
  store_.refresh();
  return make_plan(file_, runs_, inputs_, store_);
}

bool Study::has_work(const Plan& plan, const Node& node, const WorkOptions& options) const {
  if (options.until && node.kind > *options.until) return false;
  if (options.only.empty()) return true;
  const auto is_meant = [&](const Node& other) {
    return other.label.find(options.only) != std::string::npos;
  };
  if (is_meant(node)) return true;
  const auto dependents = plan.graph.dependents(node.id);
  return std::any_of(dependents.begin(), dependents.end(),
                     [&](const std::string& id) { return is_meant(*plan.graph.find(id)); });
}

std::map<std::string, std::string> Study::input_contents() {
  std::map<std::string, std::string> contents;
  const auto add = [&](const std::string& kind, const std::string& path, const std::string& content) {
    if (!path.empty() && !content.starts_with("absent "))
      contents[kind + " " + std::filesystem::absolute(path).string()] = content;
  };
  for (const Run& run : runs_) {
    const train::TrainConfig& config = run.config;
    const Inputs inputs = inputs_.of(config);
    const bool has_adapter = config.adapter && config.adapter->path;
    add(has_adapter ? "adapter " + *config.adapter->path + " of" : "model", config.student, inputs.student);
    add("model", config.teacher, inputs.teacher);
    add("queries", config.data.queries, inputs.queries);
    for (const auto& [path, content] : inputs.banks) add("rollouts", path, content);
  }
  for (const EvaluationConfig& evaluation : file_.config.evaluations)
    add("benchmarks of " + evaluation.suite + " in", evaluation.data, inputs_.suite(evaluation));
  return contents;
}

void Study::expect_nodes(Forecast& forecast, const Plan& plan, const WorkOptions& options) {
  for (const Node& node : plan.graph.nodes)
    if (has_work(plan, node, options) && !store_.is_done(node))
      forecast.expect(node.id, node.kind, relative_costs_.of(plan, node).seconds);
  for (size_t r = 0; r < runs_.size(); ++r) {
    const std::string id = "behind the trigger of " + file_.config.name + ": " + runs_[r].label;
    if (plan.runs[r].is_complete)
      forecast.forget(id);
    else
      forecast.expect(id, NodeKind::training, relative_costs_.behind_trigger(r).seconds);
  }
}

void Study::expect_work(Forecast& forecast) { expect_nodes(forecast, plan(), {}); }

bool Study::make(const Plan& plan, const Node& node, Forecast& forecast) const {
  const auto left = forecast.seconds_left();
  log_info("--- ", forecast.num_made() + 1, " of ", forecast.num_made() + forecast.num_left(),
           plan.is_complete() ? "" : " or more", ": ", node.label,
           left ? ", about " + format_duration(*left) + " left" : "");
  const Stopwatch watch;
  if (!make_node({file_, runs_, store_, plan}, node)) return false;
  const TimeSpent spent = watch.spent();
  store_.add_time(node, spent.seconds, spent.processor_seconds);
  forecast.made(node.id, spent.seconds);
  return true;
}

bool Study::work(const WorkOptions& options) {
  check_suites(file_.config);
  io::make_durable_folder(store_.root());
  Forecast own;
  Forecast& forecast = options.forecast ? *options.forecast : own;
  bool has_waited = false;
  while (!stop_requested()) {
    const Plan current = plan();
    note_inputs(store_.root(), input_contents(), options.accepts_changed_inputs);
    expect_nodes(forecast, current, options);
    const NodeStates nodes = look_at_nodes(current.graph, [&](const Node& n) { return store_.is_done(n); });
    const auto is_ours = [&](const Node* node) { return has_work(current, *node, options); };
    for (const Node* node : nodes.done)
      if (is_ours(node)) forecast.forget(node->id);  // another process may have made it
    write_graph_state(file_, current, store_);
    if (std::ranges::none_of(nodes.ready, is_ours) && std::ranges::none_of(nodes.waiting, is_ours))
      return true;
    bool has_made = false, is_claimed = false;
    for (const Node* node : nodes.ready) {
      if (!is_ours(node)) continue;
      const Claim claim(store_.claims(), node->id);
      is_claimed |= !claim.is_held();
      if (!claim.is_held()) continue;
      write_graph_state(file_, current, store_);
      store_.refresh();
      if (!store_.is_done(*node) &&  // another process may have been faster
          !make(current, *node, forecast))
        return false;
      has_made = true;
      break;
    }
    if (has_made) {
      has_waited = false;
      continue;
    }
    if (!is_claimed)
      fail(store_.root().string(),
           ": nodes are left that nobody works on and that cannot be made (see ropd "
           "study --status); files in the folder were removed or changed?");
    if (!std::exchange(has_waited, true))
      log_info("waiting for other processes: all that could be made now is claimed");
    std::this_thread::sleep_for(kWaitForOthers);
  }
  return false;
}

TimeSpent Study::time_spent() {
  TimeSpent sum;
  for (const Node& node : plan().graph.nodes)
    if (const auto time = store_.time_of(node.id)) {
      sum.seconds += time->seconds;
      sum.processor_seconds += time->processor_seconds;
    }
  return sum;
}

std::string Study::dry_run(double flops) {
  const Plan current = plan();
  std::string text =
      fmt::format("study {}: {} runs in {}\n", file_.config.name, runs_.size(), store_.root().string());
  CostEstimator costs(file_, runs_, flops);
  NodeCost sum;
  size_t num_left = 0;
  for (const Node& node : current.graph.nodes) {
    const bool is_done = store_.is_done(node);
    const NodeCost cost = costs.of(current, node);
    text += fmt::format("{} {:<10} {}  {}", node.id.substr(0, 8), kind_name(node.kind), node.label,
                        is_done ? "(done)" : "");
    if (!is_done) {
      ++num_left;
      sum.rollouts += cost.rollouts;
      sum.tokens += cost.tokens;
      sum.disk_bytes += cost.disk_bytes;
      sum.seconds += cost.seconds;
      sum.memory_bytes = std::max(sum.memory_bytes, cost.memory_bytes);
      if (cost.rollouts > 0)
        text += fmt::format("{} responses, {} tokens, {}", format_count(static_cast<double>(cost.rollouts)),
                            format_count(cost.tokens), format_duration(cost.seconds));
    }
    text += "\n";
  }
  for (size_t r = 0; r < runs_.size(); ++r)
    if (!current.runs[r].is_complete)
      text += "waits for its trigger: " + runs_[r].label +
              " (its other nodes appear when tau is known, up to " +
              format_duration(2 * costs.behind_trigger(r).seconds) + ")\n";
  for (const EvaluationConfig& evaluation : file_.config.evaluations)
    if (!std::filesystem::is_directory(evaluation.data))
      text += "not there yet: " + evaluation.data + ", the benchmark files of " + evaluation.name + "\n";
  text +=
      fmt::format("{} of {} nodes to be made: {} responses, {} tokens, {} of memory, {} of disk, about {}\n",
                  num_left, current.graph.nodes.size(), format_count(static_cast<double>(sum.rollouts)),
                  format_count(sum.tokens), format_bytes(static_cast<double>(sum.memory_bytes)),
                  format_bytes(static_cast<double>(sum.disk_bytes)), format_duration(sum.seconds));
  return text;
}

std::string Study::status() {
  const Plan current = plan();
  std::string text;
  size_t num_done = 0;
  for (const Node& node : current.graph.nodes) {
    const bool is_done = store_.is_done(node);
    num_done += is_done;
    const auto holder = is_done ? std::nullopt : claim_holder(store_.claims(), node.id);
    text += fmt::format("{:<8} {:<10} {}{}\n",
                        is_done  ? "done"
                        : holder ? "working"
                                 : "open",
                        kind_name(node.kind), node.label,
                        holder ? fmt::format(" ({}, process {})", holder->host, holder->pid) : "");
  }
  return text + fmt::format("{} of {} nodes done{}\n", num_done, current.graph.nodes.size(),
                            current.is_complete() ? "" : "; more appear when tau is known");
}

Path Study::result_directory(const Plan& plan, const PlannedEvaluation& planned) const {
  if (!planned.run) return store_.root() / (planned.is_teacher ? "teacher" : "initial-student");
  const std::string& state = plan.runs[*planned.run].states[planned.iteration];
  const Path own = store_.run(state);  // ends there; others may pass it
  return std::filesystem::exists(own / "states.json") ? own : store_.find_state(state)->run;
}

// Links, so that a result has one place and is found from its run as well.
void Study::link_evaluations(const Plan& plan) const {
  for (const PlannedEvaluation& planned : plan.evaluations) {
    if (!std::filesystem::exists(store_.evaluation(planned.id) / "summary.json")) continue;
    std::string name = file_.config.evaluations[planned.evaluation].name;
    if (planned.run && planned.iteration < runs_[*planned.run].config.train.iterations)
      name += fmt::format("-iteration-{}", planned.iteration);
    const Path folder = result_directory(plan, planned) / "eval";
    std::filesystem::create_directories(folder);
    const Path target = std::filesystem::relative(store_.evaluation(planned.id), folder);
    std::error_code error;  // another process may be doing the same
    if (std::filesystem::is_symlink(folder / name, error)) {
      if (std::filesystem::read_symlink(folder / name, error) == target) continue;
      std::filesystem::remove(folder / name, error);
    }
    std::filesystem::create_directory_symlink(target, folder / name, error);
    if (error && error != std::errc::file_exists)
      fail((folder / name).string(), ": cannot be linked to ", target.string(), ": ", error.message());
  }
}

Findings Study::write_tables() {
  const Plan current = plan();
  link_evaluations(current);
  const Results results(file_, runs_, current, store_);
  Findings found{.json = study_results_json(results)};
  std::string markdown;
  for (const stats::Table& table : study_tables(results)) {
    found.text += stats::to_text(table) + "\n";
    markdown += stats::to_markdown(table) + "\n";
  }
  const Path base = store_.root() / file_.config.name;
  write_file_atomically(base.string() + ".txt", found.text);
  write_file_atomically(base.string() + ".md", markdown);
  write_file_atomically(base.string() + ".json", found.json);
  return found;
}

}  // namespace ropd::study
