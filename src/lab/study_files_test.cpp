#include "lab/study_files.h"

#include <gmock/gmock.h>

#include "support/test_data.h"
#include "train/minibatch.h"

namespace ropd::lab {
namespace {

using testing::HasSubstr;

TEST(LabTrainConfig, IsThePapersIterationOnLabModels) {
  const auto config = lab_train_config({.models = "models"});
  EXPECT_EQ(config.train.responses_per_iteration, 480u);
  EXPECT_EQ(train::minibatch_sizes(480, config.train.minibatch), (std::vector<uint64_t>{128, 128, 128, 96}));
  EXPECT_EQ(lab_train_config({.responses_per_iteration = 32}).train.minibatch, 8u);
  EXPECT_EQ(config.rollout.max_response_tokens, 256u);
  EXPECT_EQ(config.curriculum.bank.responses, 2400u);
}

TEST(LabStudy, NamesItsMethodsSeedsAndControls) {
  const test::TemporaryDirectory directory;
  const Path path = write_lab_study(
      {.output = directory / "lab", .models = "models", .has_controls = true, .num_seeds = 3});
  const std::string text = read_file(path);
  for (const char* part :
       {"seed=3, data.order_seed=3",
        "name: \"R-OPD\", stages: [{source: current, until: trigger}, {source: initial}]",
        "{source: recent, step: 40}", "{source: current, iterations: 5}, {source: initial, iterations: 5}",
        "budgets: [64, 128, 256, 384, 512]"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_TRUE(std::filesystem::exists(directory / "lab" / "data" / "suite.yaml"));
  EXPECT_NO_THROW(train::load_train_config(directory / "lab" / "recipe.yaml"));
}

}  // namespace
}  // namespace ropd::lab
