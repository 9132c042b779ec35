#include "grading/grader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "support/test_data.h"

namespace ropd::grading {
namespace {

TEST(Grade, ReportsWhatItFound) {
  const Verdict right = grade("so \\boxed{42}", "42");
  EXPECT_TRUE(right.correct);
  EXPECT_TRUE(right.answer_found);
  EXPECT_EQ(right.extracted, "42");
  const Verdict none = grade("so 42", "42");
  EXPECT_FALSE(none.correct);
  EXPECT_FALSE(none.answer_found);
}

TEST(Grade, UnwrapsABoxedAnswer) {
  EXPECT_TRUE(grade("\\boxed{42}", "The answer is \\boxed{42}").correct);
  EXPECT_FALSE(grade("\\boxed{42}", "\\boxed 42").correct);
}

// One row for each rule of the reference that is easy to lose.
TEST(Equivalent, FollowsTheReference) {
  for (const auto& [given, expected] : {std::pair{"042", "42"},
                                        {"41.9999999999", "42"},
                                        {"1{,}000", "1000"},
                                        {"2/4", "1/2"},
                                        {"6*7", "42"},
                                        {"3.141592653589793", "\\pi"},
                                        {"50\\%", "50"},
                                        {"3 1/2", "7/2"},
                                        {"5!", "120"},
                                        {"\\log_2 8", "3"},
                                        {"{1,2}", "2,1"},
                                        {"x\\in(0,1)", "(0,1)"},
                                        {"84,69", "$69$,$84$"},
                                        {"52", "52_8"},
                                        {"x+a", "x+t"},
                                        {"42 \\text{ or } 43", "42"},
                                        {"1 2 3", "123"},
                                        {"nan", "nan"},
                                        {"7\\\\", "7"},
                                        {"-1./3+1", "-1./3"},
                                        {"\\frac{1+x}{2}", "1+\\frac{x}{2}"}})
    EXPECT_TRUE(equivalent(given, expected)) << given << " and " << expected;
  for (const auto& [given, expected] : {std::pair{"2.0000004", "2"},
                                        {"1\\,000", "1000"},
                                        {"10,00", "1000"},
                                        {"3.14159", "\\pi"},
                                        {"e^{i\\pi}", "-1"},
                                        {"5 million", "5000000"},
                                        {"(2,1)", "(1,2)"},
                                        {"0<x<1", "(0,1)"},
                                        {"69", "$69$,$84$"},
                                        {"3a", "3b"},
                                        {"12.345", "12,345"},
                                        {"1,2,3", "123"},
                                        {"1.5 dollars", "1.5"},
                                        {"x = \\text{east}", "\\text{east}"},
                                        {"", "42"}})
    EXPECT_FALSE(equivalent(given, expected)) << given << " and " << expected;
}

// Processor time, because other work on the machine must not fail a test.
double processor_seconds(const std::string& given, const std::string& expected, Mode mode) {
  const std::clock_t begin = std::clock();
  (void)equivalent(given, expected, mode);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Equivalent, GivesAVerdictOnHostileInputWithoutDelay) {
  const auto repeated = [](const std::string& text, size_t count) {
    std::string result;
    for (size_t i = 0; i < count; ++i) result += text;
    return result;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"5^{5^{5^{5^5}}}", "5^{5^{5^{5^5}}}+0"},
      {std::string(1000000, '9'), std::string(1000000, '8')},
      {std::string(8000, '9'), std::string(7999, '9')},
      {std::string(10000, '{') + "1" + std::string(10000, '}'), "1"},
      {std::string(4000, '{') + "1" + std::string(4000, '}'), "1"},
      {std::string(4000, '(') + "1" + std::string(4000, ')'), "2"},
      {repeated("\\frac{1}{", 800) + "1" + std::string(800, '}'), "2"},
      {repeated("|", 5000), "2"},
      {repeated("(1,", 600) + "2" + std::string(600, ')'), "2"},
      {repeated("x+", 3900) + "1", "2"},
      {repeated("$x$,", 2000), "2"},
      {repeated("m s a t h ", 800), "2"},
      {"99999999!", "99999999!+1"},
      {"\\sum_{i=1}^{2000}\\sum_{j=1}^{2000} ij", "1"},
      {"(x+1)^{999999}", "(x+1)^{999999}+1"},
      {repeated("a", 1000000), repeated("b", 1000000)}};
  // Without its limits each would take minutes or for ever; a few hundredths of a second is usual, and a
  // shared processor or sanitizers cost a factor of ten or so.
  constexpr double kLimit = 10;
  for (const auto& [given, expected] : cases)
    for (const Mode mode : {Mode::reference, Mode::strict})
      EXPECT_LT(processor_seconds(given, expected, mode), kLimit) << given.substr(0, 30);
}

struct Agreement {
  size_t rows = 0, correct = 0, found = 0;
  std::set<std::string> disagreements;
};

Agreement agreement_with(const std::string& file) {
  Agreement result;
  std::ifstream in(test::data_directory() / "golden" / file);
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line);
    const auto verdict = grade(row["response"].get<std::string>(), row["answer"].get<std::string>());
    ++result.rows;
    if (verdict.answer_found == (row["answer_found"] == 1)) ++result.found;
    if (verdict.correct == (row["correct"] == 1)) {
      ++result.correct;
    } else {
      result.disagreements.insert(verdict.extracted);
    }
  }
  return result;
}

TEST(GoldenGrader, AgreesOnAllEdgeCases) {
  ROPD_NEEDS_DATA();
  const Agreement agreement = agreement_with("grader_edge.jsonl");
  EXPECT_EQ(agreement.rows, 164u);
  EXPECT_EQ(agreement.found, agreement.rows);
  EXPECT_EQ(agreement.correct, agreement.rows) << testing::PrintToString(agreement.disagreements);
}

// docs/grader.md names the one row that differs: there the reference ran out of time.
TEST(GoldenGrader, AgreesOnAllBenchmarkRowsButOne) {
  ROPD_NEEDS_DATA();
  const Agreement agreement = agreement_with("grader_bench.jsonl");
  EXPECT_EQ(agreement.rows, 2703u);
  EXPECT_EQ(agreement.found, agreement.rows);
  EXPECT_EQ(agreement.correct, agreement.rows - 1) << testing::PrintToString(agreement.disagreements);
  ASSERT_EQ(agreement.disagreements.size(), 1u);
  EXPECT_TRUE(agreement.disagreements.begin()->starts_with("(\\omega_{n}^{2} e^{-\\zeta"));
}

}  // namespace
}  // namespace ropd::grading
