// diagnosis.json of `ropd diagnose` (docs/formats.md) as the report shows it. Every part may be absent or empty;
// what is there is checked.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "records/response_sample.h"

namespace ropd::report {

struct FitAndShift {
  std::string from, to;
  double change = 0, fit = 0, shift = 0;
};

struct Concentration {
  std::string source, rank_by, first, second;
  std::array<double, 2> top{}, rest{};  // mean KL of first and second, on positions ranked by rank_by
  double top_share = 0, positions_first_lower = 0, responses_first_lower = 0;
};

struct LikelihoodChange {
  std::string source, from, to;
  double less_likely = 0;
  std::vector<std::pair<double, double>> cumulative;  // change of log-likelihood, share at or below it
};

struct ProbeNorm {
  std::string student, source;
  double minibatches = 0, mean = 0, deviation = 0;
};

struct ProbeCosine {
  std::string student, first, second;
  double pairs = 0, mean = 0, standard_error = 0;
};

struct DiagnosisData {
  std::string label;  // of the folder
  std::vector<std::string> students, sources;
  std::vector<std::vector<double>> kl;  // [students][sources], nats
  std::vector<FitAndShift> fit_and_shift;
  std::vector<Concentration> concentration;
  std::vector<LikelihoodChange> likelihood;
  std::vector<ProbeNorm> norms;
  std::vector<ProbeCosine> cosines;
  std::vector<ResponseSample> samples;  // samples.jsonl beside the file; empty when absent
};

DiagnosisData read_diagnosis(const Path& file);

}  // namespace ropd::report
