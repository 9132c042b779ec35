// Makes the content of one node in the study's folder. Each part goes on where an earlier process was killed
// and ends with the same bytes.
#pragma once
#include "study/plan.h"

namespace ropd::study {

struct Workshop {
  const StudyFile& file;
  const std::vector<Run>& runs;
  const Store& store;
  const Plan& plan;
};

// False after a stop request: what is done is kept.
bool make_node(const Workshop& workshop, const Node& node);

// The configuration that a piece of training is made with: the run's own where the piece is its end, else one
// that leads to the same states and ends there.
train::TrainConfig training_config(const Workshop& workshop, const Node& node);

}  // namespace ropd::study
