// Works on a study until nothing is left to do: plans, claims a node that can be made, makes it, plans again.
// Any number of processes may do so in one folder; a process that finds all that could be made claimed by
// others waits for them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/costs.h"
#include "study/forecast.h"
#include "study/plan.h"
#include "study/work.h"

namespace ropd::study {

struct WorkOptions {
  std::string only;               // nodes whose label holds this text, and what they need; empty = all
  std::optional<NodeKind> until;  // nothing behind this kind of node
  bool accepts_changed_inputs = false;
  Forecast* forecast = nullptr;  // of a larger whole that this study is a part of; null = the study alone
};

// What a study has found.
struct Findings {
  std::string text;  // tables for people
  std::string json;  // for programs, with line breaks
};

class Study {
 public:
  // Reads and checks the file; the folder is only read.
  explicit Study(const Path& file, const std::vector<std::string>& overrides = {});
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  // Makes everything that is missing. False after a stop request.
  bool work(const WorkOptions& options);
  Plan plan();
  // The graph with costs, shared parts once; nothing is made. `flops` as of train::measure_flops().
  std::string dry_run(double flops);
  std::string status();
  // Tells a forecast all that is left to be made.
  void expect_work(Forecast& forecast);
  // Also written to OUTPUT, as text, Markdown and JSON.
  Findings write_tables();
  // Of all nodes that were made, by whichever process and study; what was lost in killed ones is not known.
  TimeSpent time_spent();

  // The run directory of an evaluated state, or a folder of its own for a model as it came; the evaluation is
  // linked below its eval/, where report and compare look for it.
  Path result_directory(const Plan& plan, const PlannedEvaluation& planned) const;

  const StudyFile& file() const { return file_; }
  const std::vector<Run>& runs() const { return runs_; }
  const Store& store() const { return store_; }

 private:
  StudyFile file_;
  std::vector<Run> runs_;
  Store store_;
  InputCatalog inputs_;
  CostEstimator relative_costs_;  // at a speed of one; forecasts learn the rest
  bool has_work(const Plan& plan, const Node& node, const WorkOptions& options) const;
  // What the study is made from, by kind and absolute path.
  std::map<std::string, std::string> input_contents();
  void link_evaluations(const Plan& plan) const;
  void expect_nodes(Forecast& forecast, const Plan& plan, const WorkOptions& options);
  bool make(const Plan& plan, const Node& node, Forecast& forecast) const;
};

}  // namespace ropd::study
