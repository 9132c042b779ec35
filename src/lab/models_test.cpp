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

}  // namespace
}  // namespace ropd::lab
