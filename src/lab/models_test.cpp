#include "lab/models.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "io/model_directory.h"
#include "support/test_data.h"

namespace ropd::lab {
namespace {

TEST(MakeStudent, GivesAnOrdinaryModelDirectoryAndTheSameOneAgain) {
  test::TemporaryDirectory directory;
  ModelRecipe recipe = student_recipe();
  recipe.steps = 3;
  recipe.sft.warmup_steps = 1;
  recipe.sft.batch_tokens = 200;
  EXPECT_EQ(make_student(directory / "a", recipe), train::RunOutcome::done);
  EXPECT_EQ(make_student(directory / "b", recipe), train::RunOutcome::done);
  const io::ModelDirectory model(directory / "a/sft/model");
  EXPECT_EQ(model.config().hidden_size, 96);
  EXPECT_EQ(sha256_file(directory / "a/sft/model/model.safetensors"),
            sha256_file(directory / "b/sft/model/model.safetensors"));
}

TEST(MakeSecondTeacher, WritesTheWorldInItsOwnNumbers) {
  test::TemporaryDirectory directory;
  ModelRecipe recipe = teacher_recipe();
  recipe.steps = 2;
  recipe.sft.warmup_steps = 1;
  recipe.sft.batch_tokens = 200;
  EXPECT_EQ(make_second_teacher(directory / "a", recipe), train::RunOutcome::done);
  const io::ModelDirectory model(directory / "a/sft/model");
  EXPECT_EQ(model.config().vocab_size, 32);
}

TEST(EnsureModel, TakesAModelThatIsThere) {
  test::TemporaryDirectory directory;
  const LabModel broken{"x", [](const Path&, const ModelRecipe&) { return train::RunOutcome::stopped; },
                        student_recipe};
  EXPECT_FALSE(ensure_model(broken, student_recipe(), directory / "models", directory / "work"))
      << "stopped while it was made";
  std::filesystem::create_directories(directory / "models/x");
  write_file_atomically(directory / "models/x/model.safetensors", "");
  EXPECT_TRUE(ensure_model(broken, student_recipe(), directory / "models", directory / "work"));
}

}  // namespace
}  // namespace ropd::lab
