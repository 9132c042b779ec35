// Evaluation inside a run: the student as it is, on the suite of the configuration, into RUN/eval/step-NNNNN.
#pragma once
#include <cstdint>

#include "io/run_directory.h"
#include "rollout/generator.h"
#include "train/model_pair.h"
#include "train/train_config.h"

namespace ropd::train {

// Is an evaluation due after this iteration?
bool is_evaluation_due(const EvalConfig& config, uint64_t iteration, uint64_t total_iterations);

// Fails, before anything trains, when the suite of the configuration cannot be asked.
void check_evaluation(const TrainConfig& config, const ModelPair& models);

// Generates what is missing and scores it; one line on the log. False after a stop request: calling again
// goes on. The generator's current policy is the student, which has made `step` steps; `student`: its weights in
// this process, for the samples.
bool evaluate_student(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
                      rollout::Generator& generator, const model::Weights& student, uint64_t step);

}  // namespace ropd::train
