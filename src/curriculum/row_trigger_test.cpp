#include "curriculum/row_trigger.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::curriculum {
namespace {

// Qualifies where the mean length is 1, says nothing where it is negative.
class LengthOne final : public RowTrigger {
 public:
  explicit LengthOne(const RowSettings& settings) : RowTrigger(settings) {}
  bool needs_gradients() const override { return false; }

 private:
  std::optional<bool> judge(const Evidence& evidence) override {
    if (evidence.length < 0) return std::nullopt;
    return evidence.length == 1;
  }
};

// The first iteration that sets it; 0 = none.
uint64_t tau_of(const RowSettings& settings, const std::vector<double>& lengths) {
  LengthOne trigger(settings);
  for (uint64_t k = 1; k <= lengths.size(); ++k)
    if (trigger.observe({.iteration = k, .length = lengths[k - 1]}).is_set) return k;
  return 0;
}

TEST(RowTrigger, IsSetByItsPersistenceInARow) {
  EXPECT_EQ(tau_of({.persistence = 2}, {1, 0, 1, 1}), 4u);
  EXPECT_EQ(tau_of({.persistence = 3}, {1, 1, 0, 1, 1}), 0u);
  EXPECT_EQ(tau_of({.persistence = 1}, {0, 1}), 2u);
  EXPECT_EQ(tau_of({.persistence = 2}, {1, -1, 1}), 0u) << "saying nothing ends the row";
}

TEST(RowTrigger, MayNotBeSetBeforeItsEarliestIterationButItsRowReachesBack) {
  EXPECT_EQ(tau_of({.persistence = 2, .earliest = 5}, {1, 1, 1, 1, 1}), 5u);
  EXPECT_EQ(tau_of({.persistence = 2, .earliest = 5}, {1, 1, 1, 0, 1, 1}), 6u);
}

TEST(RowTrigger, KnowsHowSoonItsStageMayEnd) {
  EXPECT_EQ(LengthOne({.persistence = 2}).earliest_end(0), 2u);
  EXPECT_EQ(LengthOne({.persistence = 2}).earliest_end(5), 7u);
  EXPECT_EQ(LengthOne({.persistence = 2, .earliest = 9}).earliest_end(5), 9u);
}

TEST(RowTrigger, GoesOnFromWhatItSaved) {
  LengthOne first({.persistence = 2}), second({.persistence = 2});
  (void)first.observe({.iteration = 1, .length = 1});
  second.restore(first.save());
  EXPECT_TRUE(second.observe({.iteration = 2, .length = 1}).is_set);
}

TEST(RowTrigger, RefusesNoPersistence) { EXPECT_THROW(LengthOne({.persistence = 0}), Error); }

}  // namespace
}  // namespace ropd::curriculum
