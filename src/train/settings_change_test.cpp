#include "train/settings_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using testing::HasSubstr;

class SettingsChange : public testing::Test {
 protected:
  const test::TinyWorld world;
  std::vector<ConfigDifference> changes(const std::vector<std::string>& overrides) const {
    return allowed_changes(world.config("run"), world.config("run", overrides));
  }
};

TEST_F(SettingsChange, NamesWhatChanged) {
  EXPECT_TRUE(changes({}).empty());
  EXPECT_EQ(describe(changes({"train.iterations=9", "eval.every=2"})),
            "train.iterations: 4 -> 9, eval.every: 0 -> 2");
}

TEST_F(SettingsChange, OnlyThoseOfUpdatesAlterWeights) {
  EXPECT_FALSE(alters_weights(changes({"train.iterations=9", "checkpoint.keep=1", "teacher=elsewhere"})));
  EXPECT_TRUE(alters_weights(changes({"train.learning_rate=1e-5"})));
}

TEST_F(SettingsChange, WhatThePastDependedOnMustStay) {
  for (const char* change : {"seed=9", "train.minibatch=5", "objective.top_k=4", "rollout.temperature=0.5",
                             "curriculum.stages=[{source: current}]", "trigger.persistence=1"})
    EXPECT_THAT(test::error_of([&] { (void)changes({change}); }), HasSubstr("cannot change inside a run"))
        << change;
}

TEST_F(SettingsChange, ABankMayLieElsewhere) {
  const auto with = [&](const std::string& path) {
    return world.config("run", {"curriculum.stages=[{source: bank, path: " + path + "}]"});
  };
  EXPECT_EQ(allowed_changes(with("a.jsonl"), with("b.jsonl")).size(), 1u);
}

}  // namespace
}  // namespace ropd::train
