// The laboratory as a study (study/): its recipe and its study files, written into its folder where anybody
// can read and change them. The world's models and problems are made elsewhere (models.h, benchmarks.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "lab/summary.h"
#include "train/train_config.h"

namespace ropd::lab {

struct LabOptions {
  Path output = "runs/lab";
  Path models;                // folder with teacher/ and student/
  bool is_fast = false;       // a first impression: fewer iterations, responses and questions
  bool has_controls = false;  // also the recent bank and the reverse order
  uint64_t num_seeds = 1;     // seed s: data order s, sampling seed s
  double learning_rate = 7e-5;
  uint64_t responses_per_iteration = 480;
  bool grouped = false;  // responses to one query stand together in a batch
};

// A method of the laboratory: its name in tables, what it stands for, and its stages as YAML.
struct LabMethod {
  std::string name;
  Role role = Role::current;
  std::string stages;
};
std::vector<LabMethod> lab_methods(const LabOptions& options);

inline constexpr const char* kLabEvaluation = "lab";      // name of the evaluation
inline constexpr const char* kLabDiagnosis = "prefixes";  // and of the diagnosis on prefixes of theta_0
std::vector<uint32_t> lab_budgets();

// The paper's iteration on the laboratory's models; stages and output are set by the study.
train::TrainConfig lab_train_config(const LabOptions& options);

// Writes data/, recipe.yaml and study.yaml; the study's path.
Path write_lab_study(const LabOptions& options);

}  // namespace ropd::lab
