// From a study file and what its folder holds to the graph of its work. What a run does behind its trigger is
// known only when tau is, so the plan is made again after every node; methods that share a beginning share
// its nodes because their states have equal identities.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/graph.h"
#include "study/identity.h"
#include "study/store.h"
#include "study/study_config.h"

namespace ropd::study {

// What is known of a run now.
struct RunProgress {
  std::vector<Source> sources;      // [known iterations]
  std::vector<std::string> states;  // [known iterations + 1]
  bool is_complete = false;         // all its iterations are known
  std::optional<uint64_t> tau;
};

// An evaluation or a diagnosis of a run, by its node.
struct PlannedEvaluation {
  size_t evaluation = 0;
  std::optional<size_t> run;  // none: a model as it came
  bool is_teacher = false;
  uint64_t iteration = 0;
  std::string id;
};
struct PlannedDiagnosis {
  size_t diagnosis = 0, source = 0, student = 0;
  size_t place = 0;  // run of method 0 at the same axis values
  std::string id;
};

struct Plan {
  Graph graph;
  std::vector<RunProgress> runs;  // [runs]
  std::vector<PlannedEvaluation> evaluations;
  std::vector<PlannedDiagnosis> diagnoses;
  bool is_complete() const;  // nothing waits for a trigger
};

// Content of the inputs, found once.
class InputCatalog {
 public:
  Inputs of(const train::TrainConfig& config);
  std::string suite(const EvaluationConfig& evaluation);

 private:
  std::map<std::string, std::string> known_;
  std::string model(const std::string& path, const std::string& base);
  std::string file(const std::string& path);
};

Plan make_plan(const StudyFile& file, const std::vector<Run>& runs, InputCatalog& inputs, const Store& store);

}  // namespace ropd::study
