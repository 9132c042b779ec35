// ropd grade: responses and expected answers -> verdicts, line by line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/visible_text.h"
#include "grading/grader.h"
#include "io/jsonl.h"

namespace ropd::app {
namespace {

constexpr const char* kExamples =
    R"(Lines of --in are objects with "response" (or "text", as ropd generate writes it) and "answer" (text, number, or a list of which any may match); every
other field is kept. --out gets the same lines with "correct", "answer_found" and "extracted" added.
Examples:
  ropd grade --in responses.jsonl --out graded.jsonl
  ropd grade --in responses.jsonl --out graded.jsonl --strict --json
  grep '"finish":"eos"' responses.jsonl | ropd grade --in - --out - > graded.jsonl)";

struct GradeOptions {
  std::string in;
  Output out;
  bool strict = false;
};

struct GradeSummary {
  uint64_t lines = 0, correct = 0, answers_found = 0;
};

std::string answer_text(const Json& answer, const std::string& where) {
  if (answer.is_string()) return answer.get<std::string>();
  if (answer.is_number()) return answer.dump();
  fail(where, ": \"answer\" is of type ", answer.type_name(), ", expected text, a number or a list of them");
}

// A list is right when any of its members is; null and an empty list never are.
grading::Verdict grade_row(const Json& row, const std::string& where, grading::Mode mode) {
  auto response = row.find("response");
  if (response == row.end()) response = row.find("text");  // what ropd generate writes
  const auto answer = row.find("answer");
  if (response == row.end() || !response->is_string())
    fail(where,
         ": no text under \"response\" or \"text\" (ropd generate writes \"text\" where the model has a "
         "tokenizer)");
  if (answer == row.end()) fail(where, ": no \"answer\" to compare with");
  std::vector<std::string> expected;
  if (answer->is_array()) {
    for (const auto& member : *answer) expected.push_back(answer_text(member, where));
  } else if (!answer->is_null()) {
    expected.push_back(answer_text(*answer, where));
  }
  const auto& text = response->get_ref<const std::string&>();
  grading::Verdict verdict;
  if (auto extracted = grading::extract_boxed(text)) {
    verdict.answer_found = true;
    verdict.extracted = std::move(*extracted);
  }
  for (const auto& one : expected) {
    verdict.correct = verdict.correct || grading::grade(text, one, mode).correct;
    if (verdict.correct) break;
  }
  return verdict;
}

GradeSummary grade_file(const GradeOptions& options) {
  const auto mode = options.strict ? grading::Mode::strict : grading::Mode::reference;
  io::JsonlReader reader(options.in);
  AtomicFile out(options.out.path);
  Progress progress("bytes graded", reader.size());
  GradeSummary summary;
  io::for_each_json_row(reader, [&](Json&& row, const std::string& where) {
    if (stop_requested())
      end_stopped("stopped at " + where + "; " + options.out.path +
                  " was not written, the same command begins again");
    auto verdict = grade_row(row, where, mode);
    ++summary.lines;
    summary.correct += verdict.correct ? 1 : 0;
    summary.answers_found += verdict.answer_found ? 1 : 0;
    row["correct"] = verdict.correct;
    row["answer_found"] = verdict.answer_found;
    row["extracted"] = std::move(verdict.extracted);
    // An answer cut inside a character is no UTF-8; it is written with replacement characters.
    out.write(row.dump(-1, ' ', false, Json::error_handler_t::replace));
    out.write("\n");
    progress.update(reader.position());
  });
  if (summary.lines == 0) fail(options.in, ": no lines to grade");
  out.commit();
  progress.finish();
  return summary;
}

}  // namespace

void add_grade(CLI::App& app) {
  auto options = std::make_shared<GradeOptions>();
  CLI::App* command =
      app.add_subcommand("grade", "compare boxed answers in responses with the expected ones");
  command
      ->add_option("--in", options->in,
                   "JSONL with \"response\" or \"text\", and \"answer\"; - is standard input")
      ->required()
      ->transform(or_standard_input());
  add_output(*command, options->out, "JSONL with the verdicts added")->required();
  command->add_flag("--strict", options->strict, "without the reference grader's known false positives");
  command->footer(kExamples);
  command->callback([options, &app] {
    install_stop_handlers();
    check_output(options->out, {options->in});
    const GradeSummary summary = grade_file(*options);
    if (options->out.is_standard()) return;
    const double lines = static_cast<double>(summary.lines);
    if (wants_json(app)) {
      print_json({{"lines", summary.lines},
                  {"correct", summary.correct},
                  {"answers_found", summary.answers_found},
                  {"accuracy", static_cast<double>(summary.correct) / lines},
                  {"mode", options->strict ? "strict" : "reference"}});
    } else {
      std::printf("%s: %llu lines, %llu correct (%.2f%%), %llu with an answer (%.2f%%)\n",
                  visible_line(options->out.path).c_str(), static_cast<unsigned long long>(summary.lines),
                  static_cast<unsigned long long>(summary.correct),
                  100.0 * static_cast<double>(summary.correct) / lines,
                  static_cast<unsigned long long>(summary.answers_found),
                  100.0 * static_cast<double>(summary.answers_found) / lines);
    }
  });
}

}  // namespace ropd::app
