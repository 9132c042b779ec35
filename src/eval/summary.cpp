#include "eval/summary.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/error.h"

namespace ropd::eval {
namespace {

constexpr int kFormat = 1;

Json metrics_json(const stats::Metrics& metrics) {
  return {{"accuracy", metrics.accuracy},
          {"pass_at_n", metrics.pass_at_n},
          {"majority", metrics.majority},
          {"extraction", metrics.extraction},
          {"length", metrics.mean_tokens},
          {"at_cap", metrics.at_cap},
          {"categories",
           {{"extracted", metrics.extracted_finished},
            {"extracted_at_cap", metrics.extracted_at_cap},
            {"unextracted", metrics.missing_finished},
            {"unextracted_at_cap", metrics.missing_at_cap}}}};
}

// One array per measure, over questions in the order of question_ids.
Json questions_json(const std::vector<stats::QuestionOutcomes>& questions) {
  Json json = {{"accuracy", Json::array()}, {"majority", Json::array()}, {"extraction", Json::array()},
               {"length", Json::array()},   {"at_cap", Json::array()},   {"responses", Json::array()}};
  for (const auto& question : questions) {
    const auto metrics = stats::benchmark_metrics(std::span(&question, 1));
    json["accuracy"].push_back(metrics.accuracy);
    json["majority"].push_back(metrics.majority > 0);
    json["extraction"].push_back(metrics.extraction);
    json["length"].push_back(metrics.mean_tokens);
    json["at_cap"].push_back(metrics.at_cap);
    json["responses"].push_back(question.size());
  }
  return json;
}

Json benchmark_json(const ScoredBenchmark& benchmark, const std::vector<uint32_t>& budgets) {
  Json json = {{"name", benchmark.name},
               {"samples", benchmark.samples},
               {"num_questions", benchmark.question_ids.size()},
               {"questions_sha256", benchmark.questions_sha256},
               {"question_ids", benchmark.question_ids},
               {"budgets", Json::array()}};
  for (size_t i = 0; i < budgets.size(); ++i) {
    const auto& questions = benchmark.outcomes[i];
    Json line = metrics_json(stats::benchmark_metrics(questions));
    line["budget"] = budgets[i];
    line["pass_at_k"] = Json::array();
    for (const auto& [k, value] : stats::pass_at_k_curve(questions))
      line["pass_at_k"].push_back({{"k", k}, {"value", value}});
    line["accuracy_by_length"] = Json::array();
    for (const auto& bin : stats::accuracy_by_length(questions))
      line["accuracy_by_length"].push_back({{"begin", bin.begin_tokens},
                                            {"end", bin.end_tokens},
                                            {"responses", bin.num_responses},
                                            {"accuracy", bin.accuracy}});
    line["questions"] = questions_json(questions);
    json["budgets"].push_back(std::move(line));
  }
  return json;
}

// [benchmarks] and the mean, at one budget.
std::pair<std::vector<stats::Metrics>, stats::Metrics> metrics_at(const Evaluation& evaluation,
                                                                  size_t budget_index) {
  std::vector<stats::Metrics> benchmarks;
  for (const auto& benchmark : evaluation.benchmarks)
    benchmarks.push_back(stats::benchmark_metrics(benchmark.outcomes[budget_index]));
  const auto mean = stats::mean_over_benchmarks(benchmarks);
  return {std::move(benchmarks), mean};
}

constexpr const char* kHeadings[] = {"accuracy", "pass@n", "majority", "extracted", "tokens", "at cap"};

std::vector<std::string> cells_of(const stats::Metrics& metrics) {
  std::vector<std::string> cells;
  char text[32];
  for (const double share : {metrics.accuracy, metrics.pass_at_n, metrics.majority, metrics.extraction}) {
    std::snprintf(text, sizeof text, "%.2f", 100 * share);
    cells.emplace_back(text);
  }
  std::snprintf(text, sizeof text, "%.0f", metrics.mean_tokens);
  cells.emplace_back(text);
  std::snprintf(text, sizeof text, "%.2f", 100 * metrics.at_cap);
  cells.emplace_back(text);
  return cells;
}

// Calls row(name, questions x samples, cells) for every benchmark and the mean.
template <class Row>
void for_each_table_row(const Evaluation& evaluation, size_t budget_index, Row&& row) {
  const auto [benchmarks, mean] = metrics_at(evaluation, budget_index);
  for (size_t b = 0; b < benchmarks.size(); ++b) {
    const auto& benchmark = evaluation.benchmarks[b];
    row(benchmark.name,
        std::to_string(benchmark.question_ids.size()) + " x " + std::to_string(benchmark.samples),
        cells_of(benchmarks[b]));
  }
  row(std::string("mean"), std::string(), cells_of(mean));
}

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

uint32_t budget_field(const Json& object, const std::string& where) {
  const Json& value = field(object, "budget", where);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX)
    fail(where, ": 'budget' is ", value.dump());
  return value.get<uint32_t>();
}

EvaluationSummary::Benchmark read_benchmark(const Json& json, size_t num_budgets, const std::string& where) {
  EvaluationSummary::Benchmark benchmark;
  benchmark.name = text_field(json, "name", where);
  benchmark.questions_sha256 = text_field(json, "questions_sha256", where);
  for (const Json& id : list_field(json, "question_ids", where)) {
    if (!id.is_string()) fail(where, ": question id ", id.dump(), ", expected a text");
    benchmark.question_ids.push_back(id.get<std::string>());
  }
  const Json& lines = list_field(json, "budgets", where);
  if (lines.size() != num_budgets || benchmark.question_ids.empty())
    fail(where, ": benchmark '", benchmark.name, "' has ", lines.size(), " budgets and ",
         benchmark.question_ids.size(), " questions, expected ", num_budgets,
         " budgets and at least one question");
  for (const Json& line : lines) {
    auto& values = benchmark.accuracy.emplace_back();
    for (const Json& value : list_field(field(line, "questions", where), "accuracy", where)) {
      if (!value.is_number()) fail(where, ": accuracy ", value.dump(), " of a question, expected a number");
      values.push_back(value.get<double>());
    }
    if (values.size() != benchmark.question_ids.size())
      fail(where, ": benchmark '", benchmark.name, "' has ", values.size(), " accuracies for ",
           benchmark.question_ids.size(), " questions");
  }
  return benchmark;
}

// Up to five of the ids that only one side has.
std::string ids_only_in(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  const std::set<std::string> others(right.begin(), right.end());
  std::string text;
  size_t count = 0;
  for (const auto& id : left)
    if (!others.contains(id) && count++ < 5) text += (text.empty() ? "" : ", ") + id;
  return count > 5 ? text + " and " + std::to_string(count - 5) + " more" : text;
}

}  // namespace

Json summary_json(const Evaluation& evaluation, const Json& about) {
  Json summary = {{"format", kFormat},
                  {"suite", evaluation.suite},
                  {"suite_fingerprint", evaluation.suite_fingerprint},
                  {"num_responses", evaluation.num_responses},
                  {"num_missing", evaluation.num_missing},
                  {"about", about},
                  {"budgets", Json::array()},
                  {"benchmarks", Json::array()}};
  for (size_t i = 0; i < evaluation.budgets.size(); ++i) {
    const auto [benchmarks, mean] = metrics_at(evaluation, i);
    Json line = metrics_json(mean);
    line["budget"] = evaluation.budgets[i];
    summary["budgets"].push_back(std::move(line));
  }
  for (const auto& benchmark : evaluation.benchmarks)
    summary["benchmarks"].push_back(benchmark_json(benchmark, evaluation.budgets));
  return summary;
}

std::string markdown_table(const Evaluation& evaluation) {
  std::string text;
  for (size_t i = 0; i < evaluation.budgets.size(); ++i) {
    text += (i ? "\n" : "") + ("Budget " + std::to_string(evaluation.budgets[i])) +
            " tokens, percent\n\n| benchmark | questions |";
    for (const char* heading : kHeadings) text += std::string(" ") + heading + " |";
    text += "\n|---|---|---|---|---|---|---|---|\n";
    for_each_table_row(evaluation, i,
                       [&](const std::string& name, const std::string& size, const auto& cells) {
                         text += "| " + name + " | " + size + " |";
                         for (const auto& cell : cells) text += " " + cell + " |";
                         text += "\n";
                       });
  }
  return text;
}

std::string console_table(const Evaluation& evaluation) {
  size_t name_width = 9;
  for (const auto& benchmark : evaluation.benchmarks)
    name_width = std::max(name_width, benchmark.name.size());
  const auto padded = [](std::string text, size_t width, bool to_right) {
    if (text.size() >= width) return text;
    return to_right ? std::string(width - text.size(), ' ') + text
                    : text + std::string(width - text.size(), ' ');
  };
  std::string text;
  for (size_t i = 0; i < evaluation.budgets.size(); ++i) {
    text += (i ? "\n" : "") + padded("benchmark", name_width, false) + padded("questions", 12, true);
    for (const char* heading : kHeadings) text += padded(heading, 11, true);
    text += "   (" + std::to_string(evaluation.budgets[i]) + " tokens)\n";
    for_each_table_row(evaluation, i,
                       [&](const std::string& name, const std::string& size, const auto& cells) {
                         text += padded(name, name_width, false) + padded(size, 12, true);
                         for (const auto& cell : cells) text += padded(cell, 11, true);
                         text += "\n";
                       });
  }
  return text;
}

EvaluationSummary read_summary(const Path& directory_or_file) {
  const Path path = std::filesystem::is_directory(directory_or_file) ? directory_or_file / "summary.json"
                                                                     : directory_or_file;
  const std::string where = path.string();
  if (!std::filesystem::exists(path))
    fail(where, ": no such file (not an evaluation of `ropd eval`, or not scored yet?)");
  const Json json = parse_json(read_file(path, uint64_t{256} << 20), where);
  if (const Json& format = field(json, "format", where); format != kFormat)
    fail(where, ": format ", format.dump(), ", expected ", kFormat, " (written by another version?)");
  EvaluationSummary summary;
  summary.path = path;
  const Path folder = std::filesystem::absolute(path).lexically_normal().parent_path();
  summary.label = folder.filename().string();
  summary.suite = text_field(json, "suite", where);
  for (const Json& line : list_field(json, "budgets", where))
    summary.budgets.push_back(budget_field(line, where));
  for (const Json& benchmark : list_field(json, "benchmarks", where))
    summary.benchmarks.push_back(read_benchmark(benchmark, summary.budgets.size(), where));
  if (summary.benchmarks.empty()) fail(where, ": no benchmarks in it");
  return summary;
}

std::vector<stats::BenchmarkValues> EvaluationSummary::at_budget(uint32_t budget) const {
  const auto found = std::find(budgets.begin(), budgets.end(), budget);
  if (found == budgets.end()) {
    std::string scored;
    for (const uint32_t other : budgets) scored += (scored.empty() ? "" : ", ") + std::to_string(other);
    fail(path.string(), ": not scored at ", budget, " tokens, only at ", scored,
         " (`ropd eval --rescore --budgets` adds budgets)");
  }
  std::vector<stats::BenchmarkValues> values;
  for (const auto& benchmark : benchmarks)
    values.push_back({benchmark.name, benchmark.accuracy[size_t(found - budgets.begin())]});
  return values;
}

void check_same_questions(const EvaluationSummary& left, const EvaluationSummary& right) {
  const auto names_of = [](const EvaluationSummary& summary) {
    std::vector<std::string> names;
    for (const auto& benchmark : summary.benchmarks) names.push_back(benchmark.name);
    return names;
  };
  const std::string both = left.path.string() + " and " + right.path.string();
  if (names_of(left) != names_of(right)) {
    const std::string only_left = ids_only_in(names_of(left), names_of(right)),
                      only_right = ids_only_in(names_of(right), names_of(left));
    fail(both, " have different benchmarks: only in the first: ", only_left.empty() ? "none" : only_left,
         "; only in the second: ", only_right.empty() ? "none" : only_right);
  }
  for (size_t b = 0; b < left.benchmarks.size(); ++b) {
    const auto &one = left.benchmarks[b], &other = right.benchmarks[b];
    if (one.question_ids != other.question_ids) {
      const std::string only_left = ids_only_in(one.question_ids, other.question_ids),
                        only_right = ids_only_in(other.question_ids, one.question_ids);
      fail(both, " did not see the same questions of ", one.name,
           ": only in the first: ", only_left.empty() ? "none" : only_left,
           "; only in the second: ", only_right.empty() ? "none" : only_right);
    }
    if (one.questions_sha256 != other.questions_sha256)
      fail(both, " saw questions of ", one.name,
           " with the same ids but other texts or answers (another version of the file?)");
  }
}

}  // namespace ropd::eval
