// The laboratory's teacher and initial student, made by supervised fine-tuning on the world's texts
// (lab/world.h).
#pragma once
#include <cstdint>
#include <span>

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

// Trains the model of a recipe into `directory`/sft/model (a Hugging Face directory); goes on where an earlier
// call stopped.
train::RunOutcome make_teacher(const Path& directory, const ModelRecipe& recipe = teacher_recipe());
train::RunOutcome make_student(const Path& directory, const ModelRecipe& recipe = student_recipe());
// Students of the other shapes, on the student's texts; a teacher of another family (fewer parameters, another
// tokenizer, its own seed), on the teacher's.
train::RunOutcome make_medium_student(const Path& directory, const ModelRecipe& recipe = student_recipe());
train::RunOutcome make_large_student(const Path& directory, const ModelRecipe& recipe = student_recipe());
train::RunOutcome make_second_teacher(const Path& directory, const ModelRecipe& recipe = teacher_recipe());

// The models that the laboratory's studies may ask for beside teacher and student, by the name of their folder.
struct LabModel {
  const char* name;
  train::RunOutcome (*make)(const Path&, const ModelRecipe&);
  ModelRecipe (*recipe)();
};
std::span<const LabModel> lab_models();

// Makes MODELS/NAME unless it is there; working files lie in `work`. False after a stop request.
bool ensure_model(const LabModel& model, const ModelRecipe& recipe, const Path& models, const Path& work);

}  // namespace ropd::lab
