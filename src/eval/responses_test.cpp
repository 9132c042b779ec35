#include "eval/responses.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "io/checked_lines.h"
#include "support/test_data.h"

namespace ropd::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Suite small_suite() {
  Suite suite{.name = "small"};
  suite.benchmarks.push_back(
      {.name = "a",
       .samples = 2,
       .questions = {{"q1", {{"user", "1+1?"}}, "2"}, {"q2", {{"user", "2+2?"}}, "4"}}});
  suite.benchmarks.push_back({.name = "b", .samples = 1, .questions = {{"q1", {{"user", "3+3?"}}, "6"}}});
  return suite;
}

Rollout rollout(const std::string& id, uint32_t sample, const std::string& text) {
  return {.query_id = id,
          .sample = sample,
          .prompt_ids = {1, 2},
          .response_ids = {3, 4, 5},
          .finish = Finish::eos,
          .text = text};
}

std::string line(const std::string& benchmark, const std::string& id, uint32_t sample) {
  return response_line(rollout(id, sample, benchmark + id + std::to_string(sample)), benchmark) + "\n";
}

class Responses : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  Suite suite_ = small_suite();
  Path path() const { return directory_ / "responses.jsonl"; }
  ResponseFile read(const std::string& content) {
    write_file_atomically(path(), content);
    return ResponseFile(path(), suite_);
  }
  std::string error(const std::string& content) {
    try {
      read(content);
    } catch (const Error& failure) {
      return failure.what();
    }
    return "";
  }
};

TEST_F(Responses, AbsentFileHasNothing) {
  const ResponseFile file(path(), suite_);
  EXPECT_EQ(file.num_present(), 0u);
  EXPECT_EQ(file.missing().size(), 5u);
}

TEST_F(Responses, SameIdInTwoBenchmarksIsTwoQuestions) {
  const auto file = read(line("b", "q1", 0) + line("a", "q1", 1));
  EXPECT_EQ(file.num_present(), 2u);
  EXPECT_THAT(file.missing(), ElementsAre(ResponseId{0, 0, 0}, ResponseId{0, 1, 0}, ResponseId{0, 1, 1}));
  EXPECT_EQ(response_text(*file.line({0, 0, 1}), "x"), "aq11");
  EXPECT_EQ(response_text(*file.line({1, 0, 0}), "x"), "bq10");
  EXPECT_FALSE(file.line({0, 0, 0}));
  EXPECT_THAT(file.where({0, 0, 1}), HasSubstr("responses.jsonl:2"));
}

TEST_F(Responses, TornLastLineIsLeftOut) {
  const auto file = read(line("a", "q1", 0) + line("a", "q2", 0).substr(0, 30));
  EXPECT_TRUE(file.has_torn_line());
  EXPECT_EQ(file.num_present(), 1u);
}

TEST_F(Responses, TextsKeepEscapesAndUnicode) {
  const std::string text = "π ≈ \"3\"\n\\boxed{3}\t😀";
  EXPECT_EQ(response_text(response_line(rollout("q1", 0, text), "a"), "x"), text);
}

// A model that stops at once has said nothing, which is a response like any other.
TEST_F(Responses, EmptyTextsAreTexts) {
  EXPECT_EQ(response_text(response_line(rollout("q1", 0, ""), "a"), "x"), "");
}

TEST_F(Responses, OthersResponsesAreRefusedByName) {
  EXPECT_THAT(error(line("c", "q1", 0)),
              HasSubstr("responses.jsonl:1: benchmark 'c' is not in suite 'small'"));
  EXPECT_THAT(error(line("a", "q9", 0)), HasSubstr("question 'q9' is not in benchmark 'a'"));
  EXPECT_THAT(error(line("a", "q1", 2)), HasSubstr("sample 2 of question 'q1', the suite asks for 2"));
  EXPECT_THAT(error(line("a", "q1", 0) + line("a", "q1", 0)),
              HasSubstr(":2: sample 0 of question 'q1' is already at line 1"));
  EXPECT_THAT(error("{\"query_id\": \"q1\"}\n"), HasSubstr(":1: not a response"));
  EXPECT_THAT(error("nonsense\n"), HasSubstr(":1: not a response"));
  EXPECT_THROW(response_text("{\"query_id\":\"q\"}", "x"), Error);
}

TEST_F(Responses, LinesThatDoNotFitTheirChecksumAreLeftOut) {
  const auto checked = [&](const std::string& one) {
    return io::with_checksum(one.substr(0, one.size() - 1)) + "\n";
  };
  std::string changed = checked(line("a", "q1", 1));
  changed[changed.find("aq11")] = 'b';
  const auto file = read(line("b", "q1", 0) + checked(line("a", "q1", 0)) + changed + std::string(40, '\0') +
                         "\n" + checked(line("a", "q2", 0)));
  EXPECT_EQ(file.num_present(), 3u) << "plain lines first: what an earlier version left";
  EXPECT_EQ(file.num_broken(), 2u);
  EXPECT_THAT(file.missing(), ElementsAre(ResponseId{0, 0, 1}, ResponseId{0, 1, 1}));
  EXPECT_EQ(response_text(*file.line({0, 1, 0}), "x"), "aq20");
}

TEST_F(Responses, ABrokenFirstLineIsThatOfAnUnfinishedFile) {
  const auto checked = [&](const std::string& one) {
    return io::with_checksum(one.substr(0, one.size() - 1)) + "\n";
  };
  // A power cut left zeros instead of a line, its newline and the beginning of the next.
  const std::string second = checked(line("a", "q1", 1)), zeros(60, '\0');
  const auto file = read(zeros + second.substr(20) + checked(line("a", "q2", 0)));
  EXPECT_EQ(file.num_present(), 1u);
  EXPECT_EQ(file.num_broken(), 1u);
  std::string changed = checked(line("a", "q1", 0));
  changed[changed.find("aq10")] = 'b';
  EXPECT_EQ(read(changed).num_broken(), 1u);
  EXPECT_EQ(read(zeros + "\n").num_broken(), 1u);
}

TEST_F(Responses, FinishedLinesDoNotDependOnTheOrderOfArrival) {
  const std::vector<std::string> lines = {line("a", "q1", 0), line("a", "q1", 1), line("a", "q2", 0),
                                          line("a", "q2", 1), line("b", "q1", 0)};
  std::string in_order, arrived;
  for (const auto& one : lines) in_order += one;
  for (const size_t i : {4, 2, 0, 3, 1}) arrived += lines[i];
  std::string finished;
  for_each_finished_line(read(arrived), suite_, [&](std::string_view one) { finished.append(one) += '\n'; });
  EXPECT_EQ(finished, in_order);
}

}  // namespace
}  // namespace ropd::eval
