#include "report/token_marks.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ropd::report {
namespace {

TEST(TokenMarks, GrowWithTheLogRatio) {
  const auto mark = [](double ratio) { return mark_of({"x", 1, -3.0, -3.0 + ratio}); };
  EXPECT_EQ(mark(0), "");
  EXPECT_EQ(mark(0.2), "");
  EXPECT_EQ(mark(0.25), "more1");
  EXPECT_EQ(mark(1), "more2");
  EXPECT_EQ(mark(2.75), "more3");
  EXPECT_EQ(mark(-0.5), "less1");
  EXPECT_EQ(mark(-2.5), "less3");
}

TEST(TokenMarks, NeedBothSides) {
  EXPECT_EQ(mark_of({"x", 1, -3.0, std::nullopt}), "none");
  EXPECT_EQ(mark_of({"x", 1, std::nullopt, -3.0}), "none");
  EXPECT_EQ(log_ratio({"x", 1, -3.0, std::nullopt}), std::nullopt);
}

TEST(ProbabilityText, IsShort) {
  EXPECT_EQ(probability_text(std::log(0.784)), "78 %");
  EXPECT_EQ(probability_text(std::log(0.0044)), "0.4 %");
  EXPECT_EQ(probability_text(-30.0), "< 0.1 %");
  EXPECT_EQ(probability_text(0.0), "100 %");
  EXPECT_EQ(probability_text(std::nullopt), "–");
}

TEST(TokenText, ShowsWhatCannotBeSeen) {
  EXPECT_EQ(token_text("", 9), "·");
  EXPECT_EQ(token_text("a\n", 9), "a↵\n");
  EXPECT_EQ(token_text("\x1b[2J", 9), "␛[2J");
  EXPECT_EQ(token_text("abcdef", 3), "abc…");
}

TEST(TokenDetails, NameBothModelsAndTheCandidatesInColumns) {
  const SampleToken token{
      {"five", 5, std::log(0.25), std::log(0.5)},
      {{"four", 4, std::log(0.5), std::log(0.25)}, {"fünf", 5, std::log(0.25), std::log(0.5)}}};
  EXPECT_EQ(token_details(token),
            "student 25 %, teacher 50 %, log-ratio +0.69\n"
            "candidate       student  teacher\n"
            "four               50 %     25 %\n"
            "fünf               25 %     50 %  ◂");
  EXPECT_EQ(token_details({{"x", 1, std::log(0.5), std::nullopt}, {}}), "student 50 %, teacher –");
}

}  // namespace
}  // namespace ropd::report
