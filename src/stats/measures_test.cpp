#include "stats/measures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace ropd::stats {
namespace {

// Eight responses: 2 correct; 6 with an answer, of which 1 at the cap; 3 at the cap in all.
constexpr QuestionValues kQuestion{.accuracy = 0.25,
                                   .majority = 1,
                                   .extraction = 0.75,
                                   .length = 321,
                                   .at_cap = 0.375,
                                   .extracted_at_cap = 0.125,
                                   .responses = 8};

double value(const char* name) { return value_of(parse_measure(name), kQuestion); }

TEST(Measures, HandComputedQuestion) {
  EXPECT_DOUBLE_EQ(value("accuracy"), 0.25);
  EXPECT_DOUBLE_EQ(value("pass@n"), 1);
  EXPECT_NEAR(value("pass@2"), 1 - 15.0 / 28, 1e-12);  // 1 - C(6,2)/C(8,2)
  EXPECT_DOUBLE_EQ(value("pass@8"), 1);
  EXPECT_DOUBLE_EQ(value("majority"), 1);
  EXPECT_DOUBLE_EQ(value("extraction"), 0.75);
  EXPECT_DOUBLE_EQ(value("length"), 321);
  EXPECT_DOUBLE_EQ(value("at_cap"), 0.375);
  EXPECT_DOUBLE_EQ(value("extracted"), 0.625);
  EXPECT_DOUBLE_EQ(value("extracted_at_cap"), 0.125);
  EXPECT_DOUBLE_EQ(value("unextracted"), 0.0);
  EXPECT_DOUBLE_EQ(value("unextracted_at_cap"), 0.25);
}

TEST(Measures, PassAtMoreThanThereAreIsNotThere) { EXPECT_TRUE(std::isnan(value("pass@9"))); }

TEST(Measures, EveryNameIsReadBack) {
  for (const Measure& measure : all_measures()) EXPECT_EQ(parse_measure(measure.name()), measure);
  EXPECT_EQ(parse_measure("pass@32").name(), "pass@32");
  EXPECT_EQ(parse_measures("accuracy,pass@32").size(), 2u);
  EXPECT_EQ(parse_measures("all").size(), 10u);
}

TEST(Measures, OtherNamesAreRefused) {
  for (const char* name : {"", "pass@", "pass@0", "pass@x", "pass@99999999", "Accuracy"})
    EXPECT_THROW(parse_measure(name), Error) << name;
}

TEST(Measures, OnlyLengthIsNoShare) {
  EXPECT_EQ(parse_measure("length").heading(), "length, tokens");
  EXPECT_EQ(parse_measure("pass@4").heading(), "pass@4, %");
  EXPECT_EQ(parse_measure("length").scale(), 1);
}

}  // namespace
}  // namespace ropd::stats
