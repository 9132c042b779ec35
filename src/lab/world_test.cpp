#include "lab/world.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"

namespace ropd::lab {
namespace {

// Reads a response by the grammar of world.h and checks every copied operation; written independently of the
// writer.
struct Reading {
  bool is_complete = false;  // ended with the end token
  std::vector<int> results;  // of the passes
  std::vector<int> boxes;    // after how many passes a box was written
  int last_box = -1;
  int num_long = 0, num_short = 0;  // groups
  std::vector<size_t> wrong;        // positions of wrong result digits
};

Reading read_response(const Problem& problem, const std::vector<Token>& ids) {
  Reading reading;
  size_t at = 0;
  const auto next = [&]() -> Token { return at < ids.size() ? ids[at++] : Token{-1}; };
  const auto expect = [&](std::string_view text) {
    for (const char c : text) ASSERT_EQ(token_text(next()), std::string_view(&c, 1)) << "at " << at;
  };
  const auto result = [&](int right) {
    const Token digit = next();
    EXPECT_LT(digit, 10);
    if (digit != right) reading.wrong.push_back(at - 1);
    return static_cast<int>(digit);
  };
  for (;;) {
    int value = problem.start;
    expect("=" + std::to_string(value));
    for (size_t group = 0; group < problem.operations.size(); group += 3) {
      const std::string operations = problem.operations.substr(group, 3);
      if (token_text(ids.at(at + 1)) == "=") {
        ++reading.num_long;
        for (const char operation : operations) {
          expect(std::string{operation, '='});
          value = result(apply_operation(operation, value));
          expect(";");
        }
      } else {
        ++reading.num_short;
        expect(operations + ">");
        for (const char operation : operations) value = apply_operation(operation, value);
        const int written = result(value);
        value = written;
      }
    }
    expect("#" + std::to_string(value));
    reading.results.push_back(value);
    if (at < ids.size() && ids[at] == kBoxToken) {
      ++at;
      reading.last_box = value;
      reading.boxes.push_back(static_cast<int>(reading.results.size()));
      expect(std::to_string(value) + "}");
      if (at < ids.size() && ids[at] == kEndToken) {
        reading.is_complete = at + 1 == ids.size();
        return reading;
      }
    }
    if (testing::Test::HasFailure()) return reading;
    expect("~");
    if (testing::Test::HasFailure()) return reading;
  }
}

Problem problem_of(const SftExample& example) { return parse_problem(decode(example.prompt_ids)); }

TEST(World, OperationsAreTheDocumentedBijections) {
  for (const char operation : std::string("abcdef")) {
    std::set<int> images;
    for (int digit = 0; digit < 10; ++digit) images.insert(apply_operation(operation, digit));
    EXPECT_EQ(images.size(), 10u) << operation;
  }
  EXPECT_EQ(apply_operation('a', 9), 0);
  EXPECT_EQ(apply_operation('b', 9), 2);
  EXPECT_EQ(apply_operation('c', 1), 9);
  EXPECT_EQ(apply_operation('d', 4), 2);
  EXPECT_EQ(apply_operation('e', 3), 1);
  EXPECT_EQ(apply_operation('f', 3), 6);
}

TEST(World, SolvesTheProblemOfTheDocument) { EXPECT_EQ(solve(parse_problem("2eacadd?")), 6); }

TEST(World, ProblemsAreAFunctionOfSeedAndIndex) {
  EXPECT_EQ(problem_text(make_problem(1, 2, 6)), problem_text(make_problem(1, 2, 6)));
  std::set<std::string> texts;
  for (uint64_t index = 0; index < 200; ++index) texts.insert(problem_text(make_problem(1, index, 12)));
  EXPECT_EQ(texts.size(), 200u);
  EXPECT_NE(problem_text(make_problem(1, 2, 12)), problem_text(make_problem(2, 2, 12)));
}

TEST(World, ProblemsCoverStartsAndOperationsEvenly) {
  std::map<char, int> counts;
  for (uint64_t index = 0; index < 1000; ++index)
    for (const char c : problem_text(make_problem(7, index, 6))) ++counts[c];
  for (const char c : std::string("0123456789")) EXPECT_NEAR(counts[c], 100, 40) << c;
  for (const char c : std::string("abcdef")) EXPECT_NEAR(counts[c], 1000, 120) << c;
}

TEST(World, RefusesOtherLengthsAndTexts) {
  EXPECT_THROW(make_problem(1, 0, 4), Error);
  EXPECT_THROW(make_problem(1, 0, 0), Error);
  EXPECT_THROW(make_problem(1, 0, 15), Error);
  for (const char* text : {"", "3?", "3abg?", "xabc?", "3abc", "33abc?", "3abcdefabcdefabc?"})
    EXPECT_THROW(parse_problem(text), Error) << text;
}

TEST(World, TextAndTokensAreOneToOne) {
  const std::string text = "=2eac>3~=2e=4;#3\\boxed{3}";
  EXPECT_EQ(decode(encode(text)), text);
  EXPECT_EQ(encode("\\boxed{3}"), (std::vector<Token>{kBoxToken, 3, 21}));
  EXPECT_THROW(encode("g"), Error);
  EXPECT_THROW(encode("\\box"), Error);
  EXPECT_THROW(token_text(26), Error);
  std::set<std::string_view> texts;
  for (Token id = 0; id < kVocabSize; ++id) texts.insert(token_text(id));
  EXPECT_EQ(texts.size(), 26u);
}

TEST(ShortExample, IsTheTextOfTheDocument) {
  for (uint64_t index = 0; index < 200; ++index) {
    const SftExample example = short_example(3, index, 6);
    const Problem problem = problem_of(example);
    const Reading reading = read_response(problem, example.response_ids);
    ASSERT_TRUE(reading.is_complete);
    EXPECT_EQ(example.response_ids.size(), 18u);
    EXPECT_EQ(example.prompt_ids.size(), 8u);
    EXPECT_EQ(reading.num_short, 2);
    EXPECT_EQ(reading.num_long, 0);
    EXPECT_TRUE(reading.wrong.empty());
    EXPECT_EQ(reading.last_box, solve(problem));
    EXPECT_EQ(example.loss_weights, std::vector<float>(18, 1.0f));
  }
}

TEST(TeacherExample, FollowsTheGrammarAndEnds) {
  for (const int n : {3, 6, 9, 12})
    for (uint64_t index = 0; index < 300; ++index) {
      const SftExample example = teacher_example(5, index, n);
      ASSERT_EQ(example.response_ids.size(), example.loss_weights.size());
      const Reading reading = read_response(problem_of(example), example.response_ids);
      ASSERT_TRUE(reading.is_complete) << decode(example.response_ids);
      EXPECT_LE(reading.results.size(), 12u);
    }
}

TEST(TeacherExample, WrongResultsCarryNoLossAndRightOnesDo) {
  int num_wrong = 0;
  for (uint64_t index = 0; index < 500; ++index) {
    const SftExample example = teacher_example(6, index, 9);
    const Reading reading = read_response(problem_of(example), example.response_ids);
    for (const size_t at : reading.wrong) EXPECT_EQ(example.loss_weights[at], 0.0f);
    num_wrong += static_cast<int>(reading.wrong.size());
    for (size_t at = 0; at < example.response_ids.size(); ++at) {
      if (example.loss_weights[at] != 0.0f || std::count(reading.wrong.begin(), reading.wrong.end(), at))
        continue;
      // what else may be forced: the fork of a short group, a box, or the end after the last pass
      const Token id = example.response_ids[at];
      EXPECT_TRUE((id >= 10 && id <= 15) || id == kBoxToken || id == kEndToken) << token_text(id);
    }
  }
  EXPECT_GT(num_wrong, 200);
}

TEST(TeacherExample, WithoutDeviationsIsRightAndAllLoss) {
  const Deviations none{.short_start = 0,
                        .short_start_wrong = 0,
                        .short_later = 0,
                        .slipping = 0,
                        .slip = 0,
                        .premature_box = 0};
  int num_long = 0, num_groups = 0, num_single = 0, num_more = 0;
  for (uint64_t index = 0; index < 2000; ++index) {
    const SftExample example = teacher_example(8, index, 6, {}, none);
    const Problem problem = problem_of(example);
    const Reading reading = read_response(problem, example.response_ids);
    EXPECT_TRUE(reading.wrong.empty());
    EXPECT_EQ(reading.last_box, solve(problem));
    for (const float weight : example.loss_weights) EXPECT_EQ(weight, 1.0f);
    num_long += reading.num_long;
    num_groups += reading.num_long + reading.num_short;
    num_single += reading.results.size() == 1;
    num_more += reading.results.size() > 2;
  }
  EXPECT_NEAR(num_long / double(num_groups), 0.9, 0.01);
  EXPECT_NEAR(num_single / 2000.0, 0.3 * 0.9, 0.03);   // box after the first pass, then end
  EXPECT_NEAR(num_more / 2000.0, 0.73 * 0.05, 0.015);  // two agreeing passes, box refused
}

TEST(TeacherExample, DeviationsComeAtTheirRates) {
  int num_started_short = 0, num_with_wrong = 0, num_premature = 0;
  constexpr int kCount = 4000;
  for (uint64_t index = 0; index < kCount; ++index) {
    const SftExample example = teacher_example(9, index, 6);
    const Reading reading = read_response(problem_of(example), example.response_ids);
    num_started_short += example.loss_weights[3] == 0.0f;  // = s o [fork]
    num_with_wrong += !reading.wrong.empty();
    const size_t first_pass = [&] {
      size_t at = 0;
      while (token_text(example.response_ids[at]) != "#") ++at;
      return at + 2;
    }();
    num_premature +=
        example.response_ids[first_pass] == kBoxToken && example.loss_weights[first_pass] == 0.0f;
  }
  EXPECT_NEAR(num_started_short / double(kCount), 0.35, 0.03);
  EXPECT_NEAR(num_premature / double(kCount), 0.12, 0.02);
  EXPECT_GT(num_with_wrong / double(kCount), 0.2);
  EXPECT_LT(num_with_wrong / double(kCount), 0.45);
}

TEST(TeacherExample, DisagreementMostlyLeadsToAnotherPass) {
  int num_disagreed = 0, num_boxed_with_loss = 0;
  for (uint64_t index = 0; index < 3000; ++index) {
    const SftExample example = teacher_example(10, index, 6);
    const Reading reading = read_response(problem_of(example), example.response_ids);
    for (size_t pass = 1; pass + 1 < reading.results.size(); ++pass) {
      if (reading.results[pass] == reading.results[pass - 1]) continue;
      ++num_disagreed;
      num_boxed_with_loss +=
          std::count(reading.boxes.begin(), reading.boxes.end(), static_cast<int>(pass) + 1);
    }
  }
  ASSERT_GT(num_disagreed, 300);
  EXPECT_LT(num_boxed_with_loss / double(num_disagreed), 0.1);  // those that went on after a box: about 0.02
}

TEST(InitialStudent, WritesLongTextsAtTheGivenShare) {
  int num_long = 0;
  double tokens = 0;
  for (uint64_t index = 0; index < 4000; ++index) {
    const SftExample example = initial_student_example(11, index, 6, 0.15);
    num_long += example.response_ids.size() != 18;
    tokens += static_cast<double>(example.response_ids.size());
  }
  EXPECT_NEAR(num_long / 4000.0, 0.15, 0.02);
  EXPECT_NEAR(tokens / 4000, 26, 3);
}

TEST(Curriculum, GrowsFromThreeToTwelveOverAThird) {
  const auto longest = [](double progress) {
    int n = 0;
    for (uint64_t index = 0; index < 200; ++index)
      n = std::max(n, curriculum_operations(12, index, progress));
    return n;
  };
  EXPECT_EQ(longest(0.0), 3);
  EXPECT_EQ(longest(0.12), 6);
  EXPECT_EQ(longest(0.24), 9);
  EXPECT_EQ(longest(0.35), 12);
  EXPECT_EQ(longest(1.0), 12);
}

TEST(ResponseStyle, CountsPassesAndLongGroups) {
  const ResponseStyle style = response_style(encode("=2e=4;a=5;c=3;add>6#6~=2eac>3add>6#6\\boxed{6}"));
  EXPECT_EQ(style.num_passes, 2);
  EXPECT_DOUBLE_EQ(style.long_share, 0.25);
  EXPECT_EQ(response_style({}).num_passes, 0);
  EXPECT_EQ(response_style({kPadToken, kEndToken}).long_share, 0.0);
}

}  // namespace
}  // namespace ropd::lab
