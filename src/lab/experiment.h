// The laboratory: the paper in miniature on the digit machine. Models, a bank of the initial student,
// current-only, initial-only, fixed and R-OPD training (runs that share a beginning share it), evaluation at
// five budgets, diagnostics on fixed initial prefixes, a summary and a report. Every part is kept; the same
// call goes on where an earlier one stopped.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "lab/summary.h"
#include "records/metrics.h"
#include "train/train_config.h"

namespace ropd::lab {

struct LabOptions {
  Path output = "runs/lab";
  Path models;  // folder with teacher/ and student/; empty: made by supervised fine-tuning below output
  bool is_fast = false;       // a first impression: fewer iterations, responses and questions
  bool has_controls = false;  // also the recent bank and the reverse order
  uint64_t num_seeds = 1;     // seed s: data order s, sampling seed s
  double learning_rate = 7e-5;
  uint64_t responses_per_iteration = 480;
  bool grouped = false;  // responses to one query stand together in a batch
};

// The settings of one run; stages and output are set by the method.
train::TrainConfig lab_train_config(const LabOptions& options, const Path& models, const Path& data,
                                    uint64_t seed);

// A run of the laboratory under the name of its method, for the report.
struct NamedRun {
  std::string method;
  Path directory;
};

// Runs everything that is missing. False after a stop request.
bool run_lab(const LabOptions& options, LabResults& results, std::vector<NamedRun>& runs);

}  // namespace ropd::lab
