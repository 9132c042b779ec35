// What the report takes out of a folder (docs/formats.md): a run, an evaluation, a diagnosis. Every part may be
// absent, since a folder with only an evaluation (the teacher, the initial student) is a row of the tables too. Files
// are checked and bounded; a broken one is an error that names file and line, because a report with silent holes would
// mislead.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "records/metrics.h"
#include "report/diagnosis_data.h"
#include "stats/evaluation.h"

namespace ropd::report {

// The initial policy's fixed prefixes as this run's endpoint sees them.
struct PrefixResult {
  std::optional<double> kl;           // mean full-vocabulary reverse KL to the teacher
  std::optional<double> less_likely;  // share of prefixes that became less likely than under theta_0
  std::vector<std::pair<double, double>>
      cumulative;  // change of log-likelihood, share of prefixes at or below it
};

struct EvaluationData {
  std::string name;              // of the folder below eval/
  std::optional<uint64_t> step;  // step-00060: made while training, after this optimization step
  stats::EvaluationSummary summary;
  Path responses, samples;  // responses.jsonl, samples.jsonl; empty when absent
  std::vector<std::pair<std::string, std::string>> generation = {};  // generation.json, flattened

  // Of generation.json; "" when absent.
  std::string setting(const std::string& key) const;
};

struct RunData {
  std::string label;  // the method's name in the report
  Path path;
  std::vector<IterationRecord> iterations;
  std::string config_text;                                       // config.yaml as it is
  std::vector<std::pair<std::string, std::string>> config;       // flattened: train.learning_rate -> 1e-6
  std::vector<std::pair<std::string, std::string>> environment;  // flattened likewise
  std::vector<EvaluationData> evaluations;                       // by name
  std::optional<PrefixResult> prefixes;
  std::optional<DiagnosisData> diagnosis;
  // files of responses, empty when absent
  Path first_rollouts;  // of the initial policy: the first iteration that sampled, or the initial bank
  Path last_rollouts;   // of the last iteration that sampled from the current policy
  Path first_samples, last_samples;  // samples/ of the first and the last iteration

  bool is_trained() const { return !iterations.empty(); }
  std::optional<uint64_t> tau() const;
  // "" when the key is absent.
  std::string setting(const std::string& key) const;
  // What tells this data order from others: "order 2, seed 7"; "" when it is not known.
  std::string order() const;
};

// Reads a command-line argument DIR (label = the folder's name) or NAME=DIR. Fails when nothing of a run is
// there.
RunData read_run(const std::string& argument);

// The arguments with folders of folders (a laboratory, a study) replaced by the runs and evaluations below them, at most
// three levels down, in order of their paths; each is labelled by its own name, so that seeds form one method.
std::vector<std::string> expand_arguments(const std::vector<std::string>& arguments);

}  // namespace ropd::report
