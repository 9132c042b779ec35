#include "curriculum/noise_trigger.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace ropd::curriculum {
namespace {

Evidence compared(double distance, double noise, bool counts = true) {
  return {.gradients = {.minibatches = 4, .distance = distance, .noise = noise, .note = ""},
          .counts = counts};
}

TEST(NoiseTrigger, DistanceEqualToNoiseQualifies) {
  NoiseTrigger trigger({.persistence = 1});
  EXPECT_EQ(trigger.observe(compared(4, 4)).qualifies, true);
  EXPECT_EQ(trigger.observe(compared(std::nextafter(4.0, 5.0), 4)).qualifies, false);
  EXPECT_EQ(trigger.observe(compared(3, 4)).qualifies, true);
}

TEST(NoiseTrigger, WithoutNoiseOnlyEqualMeansQualify) {
  NoiseTrigger trigger({.persistence = 1});
  EXPECT_EQ(trigger.observe(compared(0, 0)).qualifies, true);
  EXPECT_EQ(trigger.observe(compared(0.25, 0)).qualifies, false);
}

TEST(NoiseTrigger, IsSetByItsPersistenceInARow) {
  NoiseTrigger trigger({.persistence = 2});
  EXPECT_FALSE(trigger.observe(compared(1, 2)).is_set);
  EXPECT_FALSE(trigger.observe(compared(3, 2)).is_set);
  EXPECT_FALSE(trigger.observe(compared(1, 2)).is_set);
  const Verdict verdict = trigger.observe(compared(1, 2));
  EXPECT_TRUE(verdict.is_set);
  EXPECT_EQ(verdict.consecutive, 2u);
}

TEST(NoiseTrigger, AnIterationWithoutAComparisonSaysNothingAndEndsTheRow) {
  NoiseTrigger trigger({.persistence = 2});
  (void)trigger.observe(compared(1, 2));
  const Verdict nothing = trigger.observe({});
  EXPECT_FALSE(nothing.qualifies.has_value());
  EXPECT_EQ(nothing.consecutive, 0u);
  EXPECT_FALSE(trigger.observe(compared(1, 2)).is_set);
}

TEST(NoiseTrigger, WhatDoesNotCountIsJudgedButNotCounted) {
  NoiseTrigger trigger({.persistence = 1});
  const Verdict before = trigger.observe(compared(1, 2, /*counts=*/false));
  EXPECT_EQ(before.qualifies, true);
  EXPECT_EQ(before.consecutive, 0u);
  EXPECT_FALSE(before.is_set);
}

TEST(NoiseTrigger, GoesOnFromWhatItSaved) {
  NoiseTrigger first({.persistence = 2}), second({.persistence = 2});
  (void)first.observe(compared(1, 2));
  second.restore(first.save());
  EXPECT_TRUE(second.observe(compared(1, 2)).is_set);
}

TEST(NoiseTrigger, RefusesWhatAnotherTriggerSaved) {
  NoiseTrigger trigger({.persistence = 2});
  for (const char* saved : {"{}", "null", R"({"consecutive": -1})", R"({"consecutive": "2"})", "[2]"})
    EXPECT_THROW(trigger.restore(Json::parse(saved)), Error) << saved;
}

// c in D <= c V: half the noise, or twice.
TEST(NoiseTrigger, TheThresholdScalesTheNoise) {
  NoiseTrigger strict({.persistence = 1}, 0.5), lenient({.persistence = 1}, 2);
  EXPECT_EQ(strict.observe(compared(2, 4)).qualifies, true);
  EXPECT_EQ(strict.observe(compared(2.5, 4)).qualifies, false);
  EXPECT_EQ(lenient.observe(compared(8, 4)).qualifies, true);
  EXPECT_EQ(lenient.observe(compared(8.5, 4)).qualifies, false);
  EXPECT_EQ(lenient.observe(compared(0.1, 0)).qualifies, false) << "no noise: only equal means";
}

TEST(NoiseTrigger, RefusesNoPersistenceAndNoThreshold) {
  EXPECT_THROW(NoiseTrigger({.persistence = 0}), Error);
  EXPECT_THROW(NoiseTrigger({}, 0), Error);
}

}  // namespace
}  // namespace ropd::curriculum
