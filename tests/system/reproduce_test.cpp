// A report is a receipt: its commands, pasted into a shell as they are printed, make the same runs, evaluations and
// page again. On the laboratory's models, with as little work as possible.
#include <gmock/gmock.h>

#include <filesystem>
#include <utility>

#include "io/sample_file.h"
#include "system/shell.h"

namespace ropd {
namespace {

using test::run_ropd;
using testing::HasSubstr;

class Reproduce : public testing::Test {
 protected:
  const test::TemporaryDirectory directory_;
  const std::string student_ = "lab/models/student", teacher_ = "lab/models/teacher";

  std::string at(const std::string& name) const { return (directory_ / name).string(); }

  Reproduce() {
    std::string queries;
    for (const auto& [id, problem] : {std::pair{"a", "2ea?"}, {"b", "7cd?"}, {"c", "4ff?"}, {"d", "1ab?"}})
      queries += Json{{"id", id}, {"problem", problem}, {"answer", "6"}}.dump() + "\n";
    write_file_atomically(directory_ / "queries.jsonl", queries);
    write_file_atomically(directory_ / "my suite.yaml",
                          "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n  - {name: digits, file: "
                          "queries.jsonl, samples: 2}\n");
    write_file_atomically(
        directory_ / "run.yaml",
        "student: " + student_ + "\nteacher: " + teacher_ + "\noutput: " + at("run") +
            "\ndata: {queries: " + at("queries.jsonl") +
            ", select: {all: true}, prompt_suffix: \"\"}\nrollout: {max_response_tokens: 24, precision: "
            "f32}\ntrain: {iterations: 1, responses_per_iteration: 8, minibatch: 4, teacher_precision: "
            "f32}\ncurriculum: {stages: [{source: current}]}\n");
  }
  static void expect_done(const std::string& arguments) {
    const auto outcome = run_ropd("--quiet " + arguments);
    ASSERT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
  }
  void evaluate(const std::string& model, const std::string& other, const std::string& out) const {
    expect_done("eval --model " + model + " " + other + " --suite '" + at("my suite.yaml") + "' --data " +
                directory_.path().string() +
                " --max-tokens 24 --budgets 12,24 --precision f32 --seed 5 --out '" + at(out) + "'");
  }
  // What the page says can be pasted, between its marks of HTML.
  std::string printed_commands(const std::string& page) const {
    const std::string html = read_file(directory_ / page);
    const size_t begin = html.find("<pre>", html.find("<h2 id=\"reproduce\">")) + 5;
    std::string text = html.substr(begin, html.find("</pre>", begin) - begin);
    for (const auto& [entity, character] :
         {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}})
      for (size_t i = text.find(entity); i != std::string::npos; i = text.find(entity, i + 1))
        text.replace(i, std::string(entity).size(), character);
    return text;
  }
};

TEST_F(Reproduce, TheCommandsOfAReportRunAsPrinted) {
  expect_done("train " + at("run.yaml"));
  evaluate(at("run"), "--teacher " + teacher_, "run/eval/tiny");
  evaluate(student_, "--teacher " + teacher_, "theta0");
  evaluate(teacher_, "--student " + student_, "the teacher");
  expect_done("report theta_0=" + at("theta0") + " 'the teacher=" + at("the teacher") +
              "' R-OPD=" + at("run") + " --title \"it's a test\" --out " + at("page.html"));
  const std::string commands = printed_commands("page.html");
  const std::string program_folder = std::filesystem::path(ROPD_PROGRAM).parent_path().string();
  const auto outcome = test::run_shell("set -e\nPATH='" + program_folder + "':$PATH\n" + commands);
  ASSERT_EQ(outcome.exit_code, 0) << commands << outcome.err;
  for (const auto& [first, again] : {std::pair{"run/eval/tiny", "run-again/eval/tiny"},
                                     {"theta0", "theta0-again"},
                                     {"the teacher", "the teacher-again"}})
    EXPECT_EQ(read_file(directory_ / first / "responses.jsonl"),
              read_file(directory_ / again / "responses.jsonl"))
        << first;
  EXPECT_THAT(read_file(directory_ / "page-again.html"), HasSubstr("it&#39;s a test"));
}

TEST_F(Reproduce, AnEvaluationKeepsResponsesOfBothSidesForTheReport) {
  evaluate(student_, "--teacher " + teacher_, "theta0");
  evaluate(teacher_, "--student " + student_, "teacher");
  const auto of_student = io::read_samples(directory_ / "theta0/samples.jsonl");
  const auto of_teacher = io::read_samples(directory_ / "teacher/samples.jsonl");
  ASSERT_EQ(of_student.size(), 4u);
  ASSERT_EQ(of_teacher.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(of_student[i].query_id, of_teacher[i].query_id);
    EXPECT_TRUE(of_student[i].tokens[0].chosen.teacher_logprob &&
                of_teacher[i].tokens[0].chosen.teacher_logprob);
  }
  // The two sides keep their names whoever wrote the response: both see the same prompt first.
  const auto& a = of_student[0].tokens[0].candidates[0];
  const auto& b = of_teacher[0].tokens[0].candidates[0];
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.student_logprob, b.student_logprob);
  EXPECT_EQ(a.teacher_logprob, b.teacher_logprob);
  expect_done("report theta_0=" + at("theta0") + " teacher=" + at("teacher") + " --out " + at("page.html"));
  const std::string html = read_file(directory_ / "page.html");
  EXPECT_THAT(html, HasSubstr("<p class=\"question\">2ea?</p>"));
  EXPECT_THAT(html, HasSubstr("mean log-ratio"));
  EXPECT_THAT(html, HasSubstr("<span class=\"token"));
}

TEST_F(Reproduce, AModelIsComparedWithItsTeacherOrItsStudentNotBoth) {
  const auto outcome = run_ropd("eval --model " + student_ + " --teacher " + student_ + " --student " +
                                teacher_ + " --suite '" + at("my suite.yaml") + "' --out " + at("x"));
  EXPECT_EQ(outcome.exit_code, 2);  // one or the other
  EXPECT_FALSE(std::filesystem::exists(directory_ / "x"));
}

}  // namespace
}  // namespace ropd
