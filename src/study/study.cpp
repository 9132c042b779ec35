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
#include "study/tables.h"
#include "train/plan.h"

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
    : file_(load_study(file, overrides)), runs_(expand_runs(file_)), store_(file_.config.output) {}

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

bool Study::work(const WorkOptions& options) {
  check_suites(file_.config);
  io::make_durable_folder(store_.root());
  bool has_waited = false;
  while (!stop_requested()) {
    const Plan current = plan();
    size_t num_left = 0, num_nodes = 0;
    for (const Node& node : current.graph.nodes)
      if (has_work(current, node, options)) {
        ++num_nodes;
        num_left += !store_.is_done(node);
      }
    if (num_left == 0) return true;
    bool has_made = false;
    for (const Node* node : ready_nodes(current.graph, [&](const Node& n) { return store_.is_done(n); })) {
      if (!has_work(current, *node, options)) continue;
      const Claim claim(store_.claims(), node->id);
      if (!claim.is_held()) continue;
      store_.refresh();
      if (!store_.is_done(*node)) {  // another process may have been faster
        log_info("--- ", num_nodes - num_left + 1, " of ", num_nodes, current.is_complete() ? "" : " or more",
                 ": ", node->label);
        if (!make_node({file_, runs_, store_, current}, *node)) return false;
      }
      has_made = true;
      break;
    }
    if (has_made) {
      has_waited = false;
      continue;
    }
    if (!std::exchange(has_waited, true))
      log_info("waiting for other processes: all that could be made now is claimed");
    std::this_thread::sleep_for(kWaitForOthers);
  }
  return false;
}

NodeCost Study::cost_of(const Plan& plan, const Node& node, double flops) const {
  const train::TrainConfig& config = runs_[node.run].config;
  const auto train_plan = train::make_plan(config, flops);
  const double sampling_seconds_per_token =
      flops > 0 ? 2.0 * static_cast<double>(train_plan.student_parameters) / flops : 0;
  NodeCost cost{.memory_bytes = train_plan.memory_bytes};
  const auto sample = [&](uint64_t responses, double length) {
    cost.rollouts = responses;
    cost.tokens = static_cast<double>(responses) * length;
    cost.seconds = cost.tokens * sampling_seconds_per_token;
    cost.disk_bytes = static_cast<uint64_t>(8 * cost.tokens);
  };
  switch (node.kind) {
    case NodeKind::bank:
      sample(config.curriculum.bank.responses, train_plan.assumed_length);
      break;
    case NodeKind::prefixes: {
      const uint64_t queries = config.data.select.count.value_or(config.data.select.first.value_or(48));
      sample(queries * file_.config.diagnoses[node.item].samples, train_plan.assumed_length);
      break;
    }
    case NodeKind::evaluation: {
      const EvaluationConfig& evaluation = file_.config.evaluations[node.item];
      if (std::filesystem::is_directory(evaluation.data))
        sample(eval::load_suite(evaluation.suite, evaluation.data).num_responses(),
               train_plan.assumed_length);
      break;
    }
    case NodeKind::training: {
      uint64_t begin = 0;  // where the piece before it ends
      const auto& states = plan.runs[node.run].states;
      for (const std::string& need : node.needs)
        for (uint64_t k = 1; k < node.iteration; ++k)
          if (states[k] == need) begin = k;
      const uint64_t iterations = node.iteration - begin;
      cost.rollouts = iterations * config.train.responses_per_iteration;
      cost.tokens = static_cast<double>(cost.rollouts) * train_plan.assumed_length;
      cost.seconds = static_cast<double>(iterations) * train_plan.seconds_per_iteration;
      cost.disk_bytes = train_plan.checkpoint_bytes;
      break;
    }
    case NodeKind::diagnosis:
      break;
  }
  return cost;
}

std::string Study::dry_run(double flops) {
  const Plan current = plan();
  std::string text =
      fmt::format("study {}: {} runs in {}\n", file_.config.name, runs_.size(), store_.root().string());
  NodeCost sum;
  size_t num_left = 0;
  for (const Node& node : current.graph.nodes) {
    const bool is_done = store_.is_done(node);
    const NodeCost cost = cost_of(current, node, flops);
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
      text += "waits for its trigger: " + runs_[r].label + " (its other nodes appear when tau is known)\n";
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
    const std::string holder = is_done ? "" : claim_holder(store_.claims(), node.id);
    text += fmt::format("{:<8} {:<10} {}\n",
                        is_done          ? "done"
                        : holder.empty() ? "open"
                                         : "working",
                        kind_name(node.kind), node.label + (holder.empty() ? "" : " (" + holder + ")"));
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

std::string Study::write_tables() {
  const Plan current = plan();
  link_evaluations(current);
  const std::string text = study_tables(file_, runs_, current, store_);
  write_file_atomically(store_.root() / (file_.config.name + ".txt"), text);
  write_file_atomically(store_.root() / (file_.config.name + ".json"),
                        study_results_json(file_, runs_, current, store_));
  return text;
}

}  // namespace ropd::study
