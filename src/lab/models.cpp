#include "lab/models.h"

#include "io/hf_config.h"
#include "lab/model_files.h"
#include "lab/world.h"
#include "model/init.h"

namespace ropd::lab {
namespace {

constexpr uint64_t kTeacherSeed = 101, kStudentSeed = 202;

train::SftConfig lab_sft(double learning_rate, uint64_t batch_tokens) {
  train::SftConfig config;
  config.batch_tokens = batch_tokens;
  config.learning_rate = learning_rate;
  config.final_learning_rate = learning_rate / 100;
  config.warmup_steps = 40;
  config.betas = {0.9, 0.98};
  return config;
}

train::RunOutcome make_model(const Path& directory, ModelRecipe recipe, const ModelConfig& shape,
                             uint64_t seed, const train::ExampleStream& examples) {
  const Path files = directory / "files";  // what a model directory holds besides weights
  write_lab_model_files(files, shape);
  recipe.sft.model = files.string();
  recipe.sft.output = (directory / "sft").string();
  recipe.sft.seed = seed;
  return train::run_sft(recipe.sft, examples, recipe.steps, [&] {
    model::Parameters parameters(
        io::parse_model_config(read_file(files / "config.json"), (files / "config.json").string()));
    model::initialize(parameters, {.seed = seed, .qk_norm_gain = kInitialQkNormGain});
    return parameters;
  });
}

}  // namespace

ModelRecipe teacher_recipe() { return {.sft = lab_sft(3e-3, 1000), .steps = 1900}; }
ModelRecipe student_recipe() { return {.sft = lab_sft(4e-3, 1000), .steps = 2300}; }

train::RunOutcome make_teacher(const Path& directory, const ModelRecipe& recipe) {
  return make_model(directory, recipe, teacher_shape(), kTeacherSeed, [](uint64_t index, double progress) {
    // First with more short groups, whose table of 2,160 results takes long to learn; then as it should
    // write.
    TeacherPolicy policy;
    if (progress < 0.5) policy.long_group = 0.5;
    return teacher_example(kTeacherSeed, index, curriculum_operations(kTeacherSeed, index, progress), policy);
  });
}

train::RunOutcome make_student(const Path& directory, const ModelRecipe& recipe) {
  return make_model(directory, recipe, student_shape(), kStudentSeed, [](uint64_t index, double progress) {
    // First with more of the long style, so that the ability is there; then the habit of answering short.
    const double long_share = progress < 0.75 ? 0.25 : 0.10;
    return initial_student_example(kStudentSeed, index, curriculum_operations(kStudentSeed, index, progress),
                                   long_share);
  });
}

}  // namespace ropd::lab
