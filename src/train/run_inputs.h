// What a run reads, loaded and checked before it makes its folder: models, queries, banks; and which files
// those are, for the ledger that notices when one of them changes.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "io/input_ledger.h"
#include "train/model_pair.h"
#include "train/queries.h"
#include "train/train_config.h"

namespace ropd::train {

struct RunInputs {
  ModelPair models;
  QuerySet queries;  // empty where every stage reads a bank, and its rollouts hold their prompts
};

// Fails for everything in these files that would fail the run later. Writes nothing.
RunInputs load_inputs(const TrainConfig& config);

// By role: student, teacher, queries, "bank of stage 2", continue_from, eval.suite, "benchmark aime24". Those that
// exist.
using InputFiles = std::map<std::string, std::vector<io::InputFile>>;
InputFiles input_files(const TrainConfig& config);

// Relative paths of the configuration begin at `directory`, where the run began; what is not there is looked
// for from where the program stands now.
TrainConfig with_paths_from(TrainConfig config, const Path& directory);

}  // namespace ropd::train
