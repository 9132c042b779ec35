#include "curriculum/plateau_trigger.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace ropd::curriculum {
namespace {

// '+' qualifies, '-' does not, '.' says nothing; one an iteration.
std::string verdicts(PlateauTrigger& trigger, const std::vector<double>& values) {
  std::string text;
  for (const double value : values) {
    const auto qualifies =
        trigger.observe({.iteration = text.size() + 1, .kl = value, .length = 100 * value}).qualifies;
    text += qualifies ? (*qualifies ? '+' : '-') : '.';
  }
  return text;
}

std::string verdicts(const PlateauSettings& settings, const std::vector<double>& values) {
  PlateauTrigger trigger({.persistence = 1}, settings);
  return verdicts(trigger, values);
}

// 8 -> 4 falls by a half, 4 -> 3 by a quarter, 3 -> 3.75 rises by a quarter, 3.75 -> 3.75 not at all.
TEST(PlateauTrigger, QualifiesWhereTheNumberMovesByNoMoreThanItsTolerance) {
  EXPECT_EQ(verdicts({.tolerance = 0.25}, {8, 4, 3, 3.75, 3.75}), ".-+++");
  EXPECT_EQ(verdicts({.tolerance = 0.24}, {8, 4, 3, 3.75, 3.75}), ".---+");
  EXPECT_EQ(verdicts({.tolerance = 0}, {8, 4, 3, 3.75, 3.75}), ".---+");
}

// Means of two: (8 4)(2 6) 6 -> 4; (4 2)(6 2) 3 -> 4; (2 6)(2 6) 4 -> 4.
TEST(PlateauTrigger, ComparesMeansOfWindows) {
  EXPECT_EQ(verdicts({.tolerance = 0.34, .window = 2}, {8, 4, 2, 6, 2, 6}), "...+++");
  EXPECT_EQ(verdicts({.tolerance = 0.33, .window = 2}, {8, 4, 2, 6, 2, 6}), "...--+");
}

TEST(PlateauTrigger, ReadsTheKlOrTheLength) {
  for (const PlateauOf quantity : {PlateauOf::kl, PlateauOf::length}) {
    PlateauTrigger trigger({.persistence = 1}, {.quantity = quantity, .tolerance = 0.1});
    (void)trigger.observe({.iteration = 1, .kl = 1, .length = 50});
    EXPECT_EQ(trigger.observe({.iteration = 2, .kl = 1, .length = 90}).is_set, quantity == PlateauOf::kl);
  }
}

TEST(PlateauTrigger, BeginsAnewBehindANumberThatIsNone) {
  EXPECT_EQ(verdicts({}, {1, 1, std::numeric_limits<double>::quiet_NaN(), 1, 1}), ".+..+");
}

TEST(PlateauTrigger, WhatDoesNotCountIsStillComparedWith) {
  PlateauTrigger trigger({.persistence = 1}, {});
  (void)trigger.observe({.iteration = 1, .kl = 1, .counts = false});
  EXPECT_TRUE(trigger.observe({.iteration = 2, .kl = 1}).is_set);
}

TEST(PlateauTrigger, GoesOnFromWhatItSaved) {
  const std::vector<double> values = {8, 4, 2, 6, 2, 6};
  for (size_t stop = 0; stop <= values.size(); ++stop) {
    const PlateauSettings settings{.tolerance = 0.33, .window = 2};
    PlateauTrigger first({}, settings), second({}, settings);
    std::string text = verdicts(first, {values.begin(), values.begin() + static_cast<long>(stop)});
    second.restore(Json::parse(first.save().dump()));
    text += verdicts(second, {values.begin() + static_cast<long>(stop), values.end()});
    EXPECT_EQ(text, "...--+") << stop;
  }
}

TEST(PlateauTrigger, RefusesWhatAnotherTriggerSavedAndSettingsWithoutMeaning) {
  PlateauTrigger trigger({}, {});
  for (const char* saved :
       {"{}", R"({"consecutive": 1})", R"({"consecutive": 1, "values": 3})",
        R"({"consecutive": 1, "values": ["x"]})", R"({"consecutive": 1, "values": [1, 2, 3]})"})
    EXPECT_THROW(trigger.restore(Json::parse(saved)), Error) << saved;
  EXPECT_THROW(PlateauTrigger({}, {.window = 0}), Error);
  EXPECT_THROW(PlateauTrigger({}, {.tolerance = -1}), Error);
}

}  // namespace
}  // namespace ropd::curriculum
