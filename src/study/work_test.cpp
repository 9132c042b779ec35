// What a piece of training is made with; the pieces themselves are made in study_test.cpp.
#include "study/work.h"

#include <gmock/gmock.h>

#include "support/tiny_world.h"

namespace ropd::study {
namespace {

TEST(TrainingConfig, LeadsThroughTheSourcesOfThePieceAndKeepsWhatMayBeLeft) {
  const test::TinyWorld world;
  write_file_atomically(world.path("base.yaml"), config_to_yaml(world.config("unused")));
  write_file_atomically(
      world.path("study.yaml"),
      "name: n\nbase: base.yaml\noutput: " + world.path("out").string() +
          "\nmethods:\n  - {name: fixed, stages: [{source: current, iterations: 2}, {source: "
          "initial}]}\n  - {name: R-OPD}\n");
  const StudyFile file = load_study(world.path("study.yaml"));
  const auto runs = expand_runs(file);
  InputCatalog inputs;
  Store store(file.config.output);
  const Plan plan = make_plan(file, runs, inputs, store);
  const Workshop workshop{file, runs, store, plan};
  const auto piece = training_config(workshop, {.id = plan.runs[0].states[3], .run = 0, .iteration = 3});
  EXPECT_EQ(piece.train.iterations, 3u);
  ASSERT_EQ(piece.curriculum.stages.size(), 2u);
  EXPECT_EQ(piece.curriculum.stages[0].iterations, 2u);
  EXPECT_EQ(piece.curriculum.stages[1].iterations, 1u);
  EXPECT_EQ(piece.checkpoint.keep, 1u);
  const auto shared = training_config(workshop, {.id = plan.runs[0].states[1], .run = 0, .iteration = 1});
  EXPECT_EQ(shared.checkpoint.keep, 0u) << "R-OPD may leave here";
  const auto whole = training_config(workshop, {.id = plan.runs[0].states[4], .run = 0, .iteration = 4});
  EXPECT_EQ(config_to_yaml(whole.curriculum), config_to_yaml(runs[0].config.curriculum))
      << "its own curriculum";
}

TEST(TrainingConfig, ASingleLongIterationKeepsAStateInItsMiddle) {
  const test::TinyWorld world;
  write_file_atomically(world.path("base.yaml"), config_to_yaml(world.config("unused")));
  const auto kept = [&](const std::string& set) {
    write_file_atomically(world.path("study.yaml"),
                          "name: n\nbase: base.yaml\noutput: " + world.path("out").string() +
                              "\nset: [\"checkpoint.keep_steps=[1]\", " + set +
                              "]\nmethods:\n  - {name: M1, stages: [{source: initial}]}\n");
    const StudyFile file = load_study(world.path("study.yaml"));
    const auto runs = expand_runs(file);
    InputCatalog inputs;
    Store store(file.config.output);
    const Plan plan = make_plan(file, runs, inputs, store);
    const uint64_t last = runs[0].config.train.iterations;
    return training_config({file, runs, store, plan}, {.id = plan.runs[0].states[last], .iteration = last})
        .checkpoint.keep_steps;
  };
  EXPECT_THAT(kept("train.iterations=1, train.responses_per_iteration=440, curriculum.bank.responses=440"),
              testing::ElementsAre(55))
      << "110 updates";
  EXPECT_THAT(kept("train.iterations=2"), testing::IsEmpty());
  EXPECT_THAT(kept("train.iterations=1"), testing::IsEmpty()) << "three updates";
}

}  // namespace
}  // namespace ropd::study
