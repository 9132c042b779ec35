#include "train/run_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::train {
namespace {

using testing::HasSubstr;

RunState example() {
  RunState state;
  state.step = 22;
  state.minibatches = 2;
  state.updates = 21;
  state.next_request = 2880;
  state.consumed = 2560;
  state.rounds = 6;
  state.skipped_steps = 1;
  state.queries = {"a", "b\"c"};
  state.first_length_mean = 1.0 / 3.0;
  state.curriculum = {.closed_iterations = 5, .stage_begins = {1, 6}, .consecutive = 2, .tau = 5};
  state.trigger = {.minibatches = 2, .squared_deviations = 1.2345678901234567e-9, .previous_within = 0.1};
  state.bank_positions = {{"initial", 480}};
  state.fingerprints = {{"data", "0123456789abcdef"}};
  return state;
}

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
  EXPECT_EQ(parse_run_state(write_run_state(RunState{}), "state.json"), RunState{});
}

TEST(RunState, RefusesForeignFiles) {
  EXPECT_THAT(error_of("{}"), HasSubstr("state.json"));
  EXPECT_THAT(error_of("{\"format\": 2}"), HasSubstr("newer version"));
  std::string text = write_run_state(example());
  text.replace(text.find("22"), 2, "\"\"");
  EXPECT_THAT(error_of(text), HasSubstr("not the state of a run"));
}

TEST(Fingerprints, NameWhatChanged) {
  EXPECT_NO_THROW(check_fingerprints(example(), {{"data", "0123456789abcdef"}, {"bank", "x"}}));
  try {
    check_fingerprints(example(), {{"data", "fedcba9876543210"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("data: changed since the run began"));
  }
}

}  // namespace
}  // namespace ropd::train
