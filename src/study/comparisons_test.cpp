// Comparisons of hand-written diagnoses, computed by hand; those of evaluations in study_test.cpp.
#include "study/comparisons.h"

#include <gmock/gmock.h>

#include "support/test_data.h"

namespace ropd::study {
namespace {

class Compared : public testing::Test {
 protected:
  const test::TemporaryDirectory directory;
  const Store store{directory.path()};
  StudyFile file;
  std::vector<study::Run> runs;
  Plan plan;
  Compared() {
    file.config.methods = {{.name = "current"}};
    file.config.diagnoses = {
        {.name = "d", .sources = {{.name = "a"}, {.name = "b"}}, .students = {{.name = "a"}, {.name = "b"}}}};
    std::filesystem::create_directories(store.diagnosis("x").parent_path());
    add(0, "[[0.5, 0.7], [0.2, 0.2]]", "[0.0, 0.0]", "[8.0, 10.0]");
    add(1, "[[0.1, 0.3], [0.3, 0.3]]", "[0.8, null]", "[1.0, 3.0]");
  }
  void add(size_t student, const std::string& kl, const std::string& less, const std::string& norms,
           const std::string& coordinates = "[]", size_t source = 0) {
    const std::string id = "cell" + std::to_string(student) + std::to_string(source);
    plan.diagnoses.push_back({.diagnosis = 0, .source = source, .student = student, .place = 0, .id = id});
    write_file_atomically(store.diagnosis(id),
                          R"({"kl": 0, "less_likely": 0, "cumulative": [], "position_kl": )" + kl +
                              R"(, "response_less_likely": )" + less + R"(, "probe": {"norms": )" + norms +
                              R"(, "coordinates": )" + coordinates + "}}");
  }
  std::optional<MeasuredComparison> measured(ComparisonConfig comparison) const {
    comparison.diagnosis = "d";
    return measure(Results(file, runs, plan, store), comparison);
  }
};

// Responses weigh equally: (0.2 + 0.3) / 2 - (0.6 + 0.2) / 2.
TEST_F(Compared, MeanKlOverResponses) {
  const auto result = measured({.better = "b on a", .worse = "a on a"});
  ASSERT_TRUE(result.has_value());
  EXPECT_NEAR(result->effect.mean.interval.estimate, 0.25 - 0.4, 1e-12);
  EXPECT_LE(result->effect.mean.interval.low, -0.15);
}

TEST_F(Compared, NormsOfGradients) {
  const auto result = measured({.measure = "norm", .better = "a on a", .worse = "b on a"});
  EXPECT_NEAR(result->effect.mean.interval.estimate, 9 - 2, 1e-12);
}

// With its own gradients b's are at a right angle and at 3 : 4 : 5; the third minibatch has no direction.
TEST_F(Compared, CosineWithTheGradientOnOwnResponses) {
  plan.diagnoses.pop_back();
  add(1, "[]", "[]", "[1, 5, 1]", "[[0, 2], [3, 4], [1, 1]]", 0);
  add(1, "[]", "[]", "[1, 1, 0]", "[[1, 0], [1, 0], [0, 0]]", 1);
  const auto result = measured({.measure = "cosine", .better = "b on a", .against = 0});
  ASSERT_TRUE(result.has_value());
  EXPECT_NEAR(result->effect.mean.interval.estimate, (0 + 0.6) / 2, 1e-12);
}

TEST_F(Compared, AShareAgainstAConstantLeavesOutResponsesWithoutPrefixes) {
  const auto result = measured({.measure = "less_likely", .better = "b on a", .against = 50});
  EXPECT_NEAR(result->effect.mean.interval.estimate, 80 - 50, 1e-12);
}

TEST_F(Compared, WhatIsMissingIsNotMeasured) {
  plan.diagnoses.pop_back();
  EXPECT_FALSE(measured({.better = "b on a", .worse = "a on a"}).has_value());
}

TEST(ComparisonText, SaysWhatIsCompared) {
  EXPECT_EQ(comparison_text({.better = "R-OPD", .worse = "current", .budget = 512}),
            "R-OPD - current at 512");
  EXPECT_EQ(comparison_text({.measure = "length", .better = "a", .worse = "b"}), "length of a - b");
  EXPECT_EQ(comparison_text({.measure = "less_likely", .better = "R40 on initial", .against = 50}),
            "less_likely of R40 on initial - 50");
}

}  // namespace
}  // namespace ropd::study
