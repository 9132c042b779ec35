#include "stats/evaluation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/sealed_json.h"

namespace ropd::stats {
namespace {

constexpr int kFormat = 1;

// Of generation.json and the summary itself: what a difference in results may come from, model and seed
// apart.
constexpr const char* kSettings[] = {"temperature", "top_p",     "top_k",         "greedy",
                                     "max_tokens",  "precision", "template_hash", "grader"};

const Json& field(const Json& object, const char* name, const std::string& where) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end())
    fail(where, ": no '", name, "' in it, expected a summary of `ropd eval`");
  return *found;
}

const Json& list_field(const Json& object, const char* name, const std::string& where) {
  const Json& value = field(object, name, where);
  if (!value.is_array()) fail(where, ": '", name, "' is ", value.type_name(), ", expected a list");
  return value;
}

std::string text_field(const Json& object, const char* name, const std::string& where) {
  const Json& value = field(object, name, where);
  if (!value.is_string()) fail(where, ": '", name, "' is ", value.type_name(), ", expected a text");
  return value.get<std::string>();
}

double number_field(const Json& object, const char* name, const std::string& where) {
  const Json& value = field(object, name, where);
  if (!value.is_number()) fail(where, ": '", name, "' is ", value.type_name(), ", expected a number");
  return value.get<double>();
}

uint32_t count_field(const Json& object, const char* name, const std::string& where) {
  const Json& value = field(object, name, where);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX)
    fail(where, ": '", name, "' is ", value.dump().substr(0, 60), ", expected a whole number");
  return value.get<uint32_t>();
}

// One array of `questions`, a number each (true and false count as 1 and 0).
void read_values(std::vector<QuestionValues>& questions, double QuestionValues::*member, const Json& lists,
                 const char* name, const std::string& where) {
  const Json& values = list_field(lists, name, where);
  if (values.size() != questions.size())
    fail(where, ": '", name, "' has ", values.size(), " values for ", questions.size(), " questions");
  for (size_t q = 0; q < questions.size(); ++q) {
    if (!values[q].is_number() && !values[q].is_boolean())
      fail(where, ": ", name, " ", values[q].dump().substr(0, 60), " of a question, expected a number");
    questions[q].*member = values[q].is_boolean() ? double(values[q].get<bool>()) : values[q].get<double>();
  }
}

std::vector<QuestionValues> read_questions(const Json& lists, size_t count, const std::string& where) {
  std::vector<QuestionValues> questions(count);
  read_values(questions, &QuestionValues::accuracy, lists, "accuracy", where);
  read_values(questions, &QuestionValues::majority, lists, "majority", where);
  read_values(questions, &QuestionValues::extraction, lists, "extraction", where);
  read_values(questions, &QuestionValues::length, lists, "length", where);
  read_values(questions, &QuestionValues::at_cap, lists, "at_cap", where);
  // Summaries written before 2026-11-17 lack it; their categories are not known per question.
  for (auto& question : questions) question.extracted_at_cap = std::numeric_limits<double>::quiet_NaN();
  if (lists.contains("extracted_at_cap"))
    read_values(questions, &QuestionValues::extracted_at_cap, lists, "extracted_at_cap", where);
  const Json& responses = list_field(lists, "responses", where);
  if (responses.size() != count)
    fail(where, ": 'responses' has ", responses.size(), " values for ", count, " questions");
  for (size_t q = 0; q < count; ++q) {
    if (!responses[q].is_number_unsigned() || responses[q].get<uint64_t>() > UINT32_MAX)
      fail(where, ": responses ", responses[q].dump().substr(0, 60),
           " of a question, expected a whole number");
    questions[q].responses = responses[q].get<uint32_t>();
  }
  return questions;
}

EvaluationSummary::Benchmark read_benchmark(const Json& json, size_t num_budgets, const std::string& where) {
  EvaluationSummary::Benchmark benchmark;
  benchmark.name = text_field(json, "name", where);
  benchmark.samples = count_field(json, "samples", where);
  benchmark.questions_sha256 = text_field(json, "questions_sha256", where);
  for (const Json& id : list_field(json, "question_ids", where)) {
    if (!id.is_string()) fail(where, ": question id ", id.dump().substr(0, 60), ", expected a text");
    benchmark.question_ids.push_back(id.get<std::string>());
  }
  const Json& lines = list_field(json, "budgets", where);
  if (lines.size() != num_budgets || benchmark.question_ids.empty())
    fail(where, ": benchmark '", benchmark.name, "' has ", lines.size(), " budgets and ",
         benchmark.question_ids.size(), " questions, expected ", num_budgets,
         " budgets and at least one question");
  for (const Json& line : lines) {
    benchmark.questions.push_back(
        read_questions(field(line, "questions", where), benchmark.question_ids.size(), where));
    auto& bins = benchmark.by_length.emplace_back();
    for (const Json& bin : list_field(line, "accuracy_by_length", where))
      bins.push_back({count_field(bin, "begin", where), count_field(bin, "end", where),
                      count_field(bin, "responses", where), number_field(bin, "accuracy", where)});
    auto& curve = benchmark.pass_at_k.emplace_back();
    for (const Json& point : list_field(line, "pass_at_k", where))
      curve.push_back({count_field(point, "k", where), number_field(point, "value", where)});
  }
  return benchmark;
}

std::vector<std::pair<std::string, std::string>> read_settings(const Json& json) {
  std::vector<std::pair<std::string, std::string>> settings;
  const auto about = json.find("about");
  if (about == json.end() || !about->is_object()) return settings;
  for (const char* name : kSettings) {
    const auto found = about->find(name);
    // Evaluations inside a training run are graded by the reference and do not say so.
    std::string value = name == std::string("grader") ? "reference" : "unknown";
    if (found != about->end())
      value = found->is_string() ? found->get<std::string>() : found->dump().substr(0, 200);
    settings.emplace_back(name, value);
  }
  return settings;
}

// Up to five of the ids that only one side has.
std::string ids_only_in(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  const std::set<std::string> others(right.begin(), right.end());
  std::string text;
  size_t count = 0;
  for (const auto& id : left)
    if (!others.contains(id) && count++ < 5) text += (text.empty() ? "" : ", ") + id;
  if (text.empty()) return "none";
  return count > 5 ? text + " and " + std::to_string(count - 5) + " more" : text;
}

}  // namespace

bool EvaluationSummary::has_budget(uint32_t budget) const {
  return std::find(budgets.begin(), budgets.end(), budget) != budgets.end();
}

RunValues EvaluationSummary::values(const Measure& measure, uint32_t budget) const {
  const auto found = std::find(budgets.begin(), budgets.end(), budget);
  if (found == budgets.end()) {
    std::string scored;
    for (const uint32_t other : budgets) scored += (scored.empty() ? "" : ", ") + std::to_string(other);
    fail(path.string(), ": not scored at ", budget, " tokens, only at ", scored,
         " (`ropd eval --rescore --budgets LIST` scores the saved responses at every budget of LIST, in "
         "place of the "
         "present ones)");
  }
  RunValues run;
  for (const Benchmark& benchmark : benchmarks) {
    BenchmarkValues values{benchmark.name, {}};
    for (const QuestionValues& question : benchmark.questions[size_t(found - budgets.begin())])
      values.values.push_back(value_of(measure, question));
    if (std::all_of(values.values.begin(), values.values.end(), [](double v) { return std::isfinite(v); }))
      run.push_back(std::move(values));
  }
  if (run.empty())
    fail(path.string(), ": ", measure.name(), " is not known for any benchmark (",
         measure.kind == Measure::Kind::pass ? "fewer responses a question than that"
                                             : "written by an older version; `ropd eval --rescore` adds it",
         ")");
  return run;
}

EvaluationSummary read_summary(const Path& directory_or_file) {
  const Path path = std::filesystem::is_directory(directory_or_file) ? directory_or_file / "summary.json"
                                                                     : directory_or_file;
  const std::string where = path.string();
  if (!std::filesystem::exists(path))
    fail(where, ": no such file (not an evaluation of `ropd eval`, or not scored yet?)");
  const Json json = unsealed(parse_json(read_file(path, uint64_t{256} << 20), where), where);
  if (const Json& format = field(json, "format", where); format != kFormat)
    fail(where, ": format ", format.dump().substr(0, 60), ", expected ", kFormat,
         " (written by another version?)");
  EvaluationSummary summary;
  summary.path = path;
  const Path folder = std::filesystem::absolute(path).lexically_normal().parent_path();
  summary.label = folder.filename().string();
  summary.suite = text_field(json, "suite", where);
  summary.suite_fingerprint = text_field(json, "suite_fingerprint", where);
  summary.settings = read_settings(json);
  for (const Json& line : list_field(json, "budgets", where))
    summary.budgets.push_back(count_field(line, "budget", where));
  if (!std::is_sorted(summary.budgets.begin(), summary.budgets.end()) || summary.budgets.empty())
    fail(where, ": budgets are ", summary.budgets.empty() ? "absent" : "not ascending");
  for (const Json& benchmark : list_field(json, "benchmarks", where))
    summary.benchmarks.push_back(read_benchmark(benchmark, summary.budgets.size(), where));
  if (summary.benchmarks.empty()) fail(where, ": no benchmarks in it");
  return summary;
}

Path find_evaluation(const Path& directory) {
  if (!std::filesystem::is_directory(directory / "eval") ||
      std::filesystem::exists(directory / "summary.json"))
    return directory;
  std::vector<Path> found;
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "eval"))
    if (std::filesystem::exists(entry.path() / "summary.json")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  for (const Path& path : found) names += (names.empty() ? "" : ", ") + path.filename().string();
  if (found.size() != 1)
    fail(directory.string(), ": ", found.size(), " evaluations in eval/",
         names.empty() ? "" : " (" + names + ")", ", expected one; name the evaluation itself");
  return found.front();
}

void check_same_questions(const EvaluationSummary& left, const EvaluationSummary& right) {
  const auto names_of = [](const EvaluationSummary& summary) {
    std::vector<std::string> names;
    for (const auto& benchmark : summary.benchmarks) names.push_back(benchmark.name);
    return names;
  };
  const std::string both = left.path.string() + " and " + right.path.string();
  if (names_of(left) != names_of(right))
    fail(both,
         " have different benchmarks: only in the first: ", ids_only_in(names_of(left), names_of(right)),
         "; only in the second: ", ids_only_in(names_of(right), names_of(left)));
  for (size_t b = 0; b < left.benchmarks.size(); ++b) {
    const auto &one = left.benchmarks[b], &other = right.benchmarks[b];
    if (one.question_ids != other.question_ids)
      fail(both, " did not see the same questions of ", one.name,
           ": only in the first: ", ids_only_in(one.question_ids, other.question_ids),
           "; only in the second: ", ids_only_in(other.question_ids, one.question_ids));
    if (one.questions_sha256 != other.questions_sha256)
      fail(both, " saw questions of ", one.name,
           " with the same ids but other texts or answers (another version of the file?)");
  }
}

std::vector<std::string> different_settings(const EvaluationSummary& left, const EvaluationSummary& right) {
  std::vector<std::string> differences;
  const auto compare = [&](const std::string& name, const std::string& one, const std::string& other) {
    if (one != other)
      differences.push_back(name + " is " + one + " in " + left.path.string() + " and " + other + " in " +
                            right.path.string());
  };
  for (size_t b = 0; b < std::min(left.benchmarks.size(), right.benchmarks.size()); ++b)
    compare("samples of " + left.benchmarks[b].name, std::to_string(left.benchmarks[b].samples),
            std::to_string(right.benchmarks[b].samples));
  // The fingerprint covers samples, questions and prompts; the first two have been compared.
  if (differences.empty() && left.suite_fingerprint != right.suite_fingerprint)
    differences.push_back("prompts (prefix, suffix or thinking) of " + left.path.string() + " and " +
                          right.path.string() + " are not the same");
  if (left.settings.empty() || right.settings.empty()) {
    if (left.settings.empty() != right.settings.empty())
      differences.push_back("how the responses of " + (left.settings.empty() ? left : right).path.string() +
                            " were sampled is not known");
    return differences;
  }
  for (size_t i = 0; i < left.settings.size(); ++i)
    compare(left.settings[i].first, left.settings[i].second, right.settings[i].second);
  return differences;
}

}  // namespace ropd::stats
