// --json: one JSON object on every line of standard output and nothing else, whatever the command.
#include <gmock/gmock.h>

#include <sstream>

#include "base/json.h"
#include "support/run_fixture.h"
#include "system/shell.h"

namespace ropd {
namespace {

void expect_json_lines(const std::string& arguments) {
  const auto outcome = test::run_ropd(arguments + " --json");
  ASSERT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
  std::istringstream lines(outcome.out);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(json.is_object()) << arguments << ": " << line.substr(0, 200);
  }
  EXPECT_GT(count, 0u) << arguments;
}

TEST(JsonLines, AreAllThatCommandsPrint) {
  const test::TemporaryDirectory directory;
  const auto at = [&](const std::string& name) { return (directory / name).string(); };
  test::write_text(directory / "queries.jsonl",
                   "{\"id\": \"a\", \"problem\": \"2ea?\", \"answer\": \"6\"}\n");
  test::write_text(directory / "suite.yaml",
                   "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n  - {name: digits, file: queries.jsonl}\n");
  test::write_text(
      directory / "run.yaml",
      "student: lab/models/student\nteacher: lab/models/teacher\noutput: " + at("run") +
          "\ndata: {queries: " + at("queries.jsonl") +
          ", select: {all: true}, prompt_suffix: \"\"}\nrollout: {max_response_tokens: 16, precision: f32}\n"
          "train: {iterations: 1, responses_per_iteration: 4, minibatch: 4}\n"
          "curriculum: {stages: [{source: current}]}\n");
  test::write_text(directory / "study.yaml", "name: tiny\nbase: run.yaml\noutput: " + at("study") +
                                                 "\nmethods:\n  - {name: current, stages: [{source: "
                                                 "current}]}\nevaluations:\n  - {name: e, suite: " +
                                                 at("suite.yaml") + ", data: " + directory.path().string() +
                                                 ", max_tokens: 16, budgets: [16]}\n");
  test::write_text(directory / "grade.jsonl", "{\"response\": \"\\\\boxed{6}\", \"answer\": \"6\"}\n");
  expect_json_lines("inspect lab/models/student");
  expect_json_lines("plan " + at("run.yaml"));
  expect_json_lines("train " + at("run.yaml") + " --dry-run");
  expect_json_lines("eval --model lab/models/student --suite " + at("suite.yaml") + " --data " +
                    directory.path().string() + " --max-tokens 16 --precision f32 --out " + at("eval"));
  expect_json_lines("report " + at("eval") + " --out " + at("page.html"));
  expect_json_lines("study " + at("study.yaml") + " --dry-run");
  expect_json_lines("lab --paper --fast --study gradients --dry-run --out " + at("lab"));
  expect_json_lines("study " + at("study.yaml") + " --status");
  expect_json_lines("study " + at("study.yaml"));
  expect_json_lines("grade --in " + at("grade.jsonl") + " --out " + at("graded.jsonl"));
  expect_json_lines("verify lab/models/student");
}

}  // namespace
}  // namespace ropd
