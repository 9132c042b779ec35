// Works on a study until nothing is left to do: plans, claims a node that can be made, makes it, plans again.
// Any number of processes may do so in one folder; a process that finds all that could be made claimed by
// others waits for them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "study/plan.h"
#include "study/work.h"

namespace ropd::study {

struct WorkOptions {
  std::string only;               // nodes whose label holds this text, and what they need; empty = all
  std::optional<NodeKind> until;  // nothing behind this kind of node
};

// What a node will cost, roughly.
struct NodeCost {
  uint64_t rollouts = 0;
  double tokens = 0;
  uint64_t memory_bytes = 0, disk_bytes = 0;
  double seconds = 0;
};

class Study {
 public:
  // Reads and checks the file; the folder is only read.
  explicit Study(const Path& file, const std::vector<std::string>& overrides = {});

  // Makes everything that is missing. False after a stop request.
  bool work(const WorkOptions& options);
  Plan plan();
  // The graph with costs, shared parts once; nothing is made. `flops` as of train::measure_flops().
  std::string dry_run(double flops);
  std::string status();
  // Tables as text; also written to OUTPUT/NAME.txt and NAME.json.
  std::string write_tables();

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
  bool has_work(const Plan& plan, const Node& node, const WorkOptions& options) const;
  void link_evaluations(const Plan& plan) const;
  NodeCost cost_of(const Plan& plan, const Node& node, double flops) const;
};

}  // namespace ropd::study
