#include "lab/models.h"

#include <filesystem>

#include "io/hf_config.h"
#include "lab/model_files.h"
#include "lab/world.h"
#include "model/init.h"

namespace ropd::lab {
namespace {

constexpr uint64_t kTeacherSeed = 101, kStudentSeed = 202, kSecondTeacherSeed = 303;

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
                             uint64_t seed, const train::ExampleStream& examples,
                             const Vocabulary& vocabulary = own_vocabulary()) {
  const Path files = directory / "files";  // what a model directory holds besides weights
  write_lab_model_files(files, shape, vocabulary);
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

SftExample teacher_text(uint64_t seed, uint64_t index, double progress) {
  // First with more short groups, whose table of 2,160 results takes long to learn; then as it should write.
  TeacherPolicy policy;
  if (progress < 0.5) policy.long_group = 0.5;
  return teacher_example(seed, index, curriculum_operations(seed, index, progress), policy);
}

train::RunOutcome make_student_of(const Path& directory, const ModelRecipe& recipe,
                                  const ModelConfig& shape) {
  return make_model(directory, recipe, shape, kStudentSeed, [](uint64_t index, double progress) {
    // First with more of the long style, so that the ability is there; then the habit of answering short.
    const double long_share = progress < 0.75 ? 0.25 : 0.10;
    return initial_student_example(kStudentSeed, index, curriculum_operations(kStudentSeed, index, progress),
                                   long_share);
  });
}

}  // namespace

ModelRecipe teacher_recipe() { return {.sft = lab_sft(3e-3, 1000), .steps = 1900}; }
ModelRecipe student_recipe() { return {.sft = lab_sft(4e-3, 1000), .steps = 2300}; }

train::RunOutcome make_teacher(const Path& directory, const ModelRecipe& recipe) {
  return make_model(directory, recipe, teacher_shape(), kTeacherSeed, [](uint64_t index, double progress) {
    return teacher_text(kTeacherSeed, index, progress);
  });
}

train::RunOutcome make_student(const Path& directory, const ModelRecipe& recipe) {
  return make_student_of(directory, recipe, student_shape());
}

train::RunOutcome make_medium_student(const Path& directory, const ModelRecipe& recipe) {
  return make_student_of(directory, recipe, medium_student_shape());
}

train::RunOutcome make_large_student(const Path& directory, const ModelRecipe& recipe) {
  return make_student_of(directory, recipe, large_student_shape());
}

train::RunOutcome make_second_teacher(const Path& directory, const ModelRecipe& recipe) {
  const auto examples = [](uint64_t index, double progress) {
    SftExample example = teacher_text(kSecondTeacherSeed, index, progress);
    for (auto* ids : {&example.prompt_ids, &example.response_ids})
      for (Token& token : *ids) token = other_vocabulary().ids[static_cast<size_t>(token)];
    return example;
  };
  return make_model(directory, recipe, second_teacher_shape(), kSecondTeacherSeed, examples,
                    other_vocabulary());
}

std::span<const LabModel> lab_models() {
  static constexpr LabModel kModels[] = {{"medium-student", make_medium_student, student_recipe},
                                         {"large-student", make_large_student, student_recipe},
                                         {"second-teacher", make_second_teacher, teacher_recipe}};
  return kModels;
}

bool ensure_model(const LabModel& model, const ModelRecipe& recipe, const Path& models, const Path& work) {
  if (std::filesystem::exists(models / model.name / "model.safetensors")) return true;
  if (model.make(work / model.name, recipe) != train::RunOutcome::done) return false;
  std::filesystem::create_directories(models);
  std::filesystem::remove_all(models / model.name);  // a description without weights, of a dry run
  std::filesystem::rename(work / model.name / "sft" / "model", models / model.name);
  return true;
}

}  // namespace ropd::lab
