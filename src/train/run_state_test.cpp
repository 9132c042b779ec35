#include "train/run_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::train {
namespace {

using testing::HasSubstr;

SavedRun example() {
  SavedRun saved;
  saved.run.step = 22;
  saved.run.skipped_steps = 1;
  saved.run.fingerprints = {{"data", "0123456789abcdef"}};
  saved.minibatches = 2;
  saved.supply.next_request = 2880;
  saved.supply.consumed = 2560;
  saved.supply.rounds = 6;
  saved.supply.queries = {"a", "b\"c"};
  saved.supply.bank_positions = {{"initial", 480}};
  saved.supply.bank_fingerprints = {{"recent:8", "fedcba"}};
  saved.curriculum = {
      .closed_iterations = 5, .stage_begins = {1, 6}, .tau = 5, .trigger = {{"consecutive", 2}}};
  saved.curriculum.watched = {{{{"consecutive", 0}, {"values", {0.1, 2.5}}}, {}}, {{{"consecutive", 3}}, 4}};
  saved.learner.updates = 21;
  saved.learner.statistics = {
      .minibatches = 2, .squared_deviations = 1.2345678901234567e-9, .previous_within = 0.1};
  return saved;
}

// The same, as the first version wrote it.
constexpr const char* kFormat1 = R"({
 "format": 1, "step": 22, "minibatches": 2, "updates": 21, "next_request": 2880, "consumed": 2560, "rounds": 6,
 "skipped_steps": 1, "skipped_in_a_row": 0, "first_length_mean": 0.3333333333333333,
 "curriculum": {"closed_iterations": 5, "stage_begins": [1, 6], "consecutive": 2, "tau": 5},
 "trigger": {"minibatches": 2, "squared_deviations": 1.2345678901234567e-09, "previous_within": 0.1},
 "bank_positions": {"initial": 480}, "fingerprints": {"data": "0123456789abcdef"}, "queries": ["a", "b\"c"]})";

std::string error_of(const std::string& text) {
  try {
    (void)parse_run_state(text, "state.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunState, ComesBackExactly) {
  EXPECT_EQ(parse_run_state(write_run_state(example()), "state.json"), example());
  EXPECT_EQ(parse_run_state(write_run_state(SavedRun{}), "state.json"), SavedRun{});
}

TEST(RunState, OfTheFirstFormatIsRead) {
  SavedRun expected = example();
  expected.supply.bank_fingerprints.clear();
  expected.curriculum.watched.clear();
  EXPECT_EQ(parse_run_state(kFormat1, "state.json"), expected);
}

TEST(RunState, RefusesForeignFiles) {
  EXPECT_THAT(error_of("{}"), HasSubstr("state.json"));
  EXPECT_THAT(error_of("{\"format\": 3}"), HasSubstr("newer version"));
  std::string text = write_run_state(example());
  text.replace(text.find("22"), 2, "\"\"");
  EXPECT_THAT(error_of(text), HasSubstr("not the state of a run"));
}

TEST(Fingerprints, NameWhatChanged) {
  EXPECT_NO_THROW(check_fingerprints(example().run, {{"data", "0123456789abcdef"}, {"bank", "x"}}));
  try {
    check_fingerprints(example().run, {{"data", "fedcba9876543210"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("data: changed since the run began"));
  }
}

}  // namespace
}  // namespace ropd::train
