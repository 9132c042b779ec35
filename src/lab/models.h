// The laboratory's teacher and initial student, made by supervised fine-tuning on the world's texts
// (lab/world.h).
#pragma once
#include <cstdint>

#include "base/file.h"
#include "train/session.h"
#include "train/sft.h"

namespace ropd::lab {

struct ModelRecipe {
  train::SftConfig sft;  // model and output are set by make_model
  uint64_t steps = 0;
};

ModelRecipe teacher_recipe();
ModelRecipe student_recipe();

// Trains the model of a recipe into `directory`/model (a Hugging Face directory); goes on where an earlier
// call stopped.
train::RunOutcome make_teacher(const Path& directory, const ModelRecipe& recipe = teacher_recipe());
train::RunOutcome make_student(const Path& directory, const ModelRecipe& recipe = student_recipe());

}  // namespace ropd::lab
