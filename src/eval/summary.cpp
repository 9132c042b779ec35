#include "eval/summary.h"

#include <string>
#include <utility>

namespace ropd::eval {
namespace {

constexpr int kFormat = 1;

Json metrics_json(const stats::AnswerMetrics& metrics) {
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
  Json json;
  for (const char* name :
       {"accuracy", "majority", "extraction", "length", "at_cap", "extracted_at_cap", "responses"})
    json[name] = Json::array();
  for (const auto& question : questions) {
    const auto metrics = stats::benchmark_metrics(std::span(&question, 1));
    json["accuracy"].push_back(metrics.accuracy);
    json["majority"].push_back(metrics.majority > 0);
    json["extraction"].push_back(metrics.extraction);
    json["length"].push_back(metrics.mean_tokens);
    json["at_cap"].push_back(metrics.at_cap);
    json["extracted_at_cap"].push_back(metrics.extracted_at_cap);
    json["responses"].push_back(question.size());
  }
  return json;
}

Json benchmark_json(const GradedBenchmark& benchmark, const std::vector<uint32_t>& budgets) {
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
std::pair<std::vector<stats::AnswerMetrics>, stats::AnswerMetrics> metrics_at(const Evaluation& evaluation,
                                                                              size_t budget_index) {
  std::vector<stats::AnswerMetrics> benchmarks;
  for (const auto& benchmark : evaluation.benchmarks)
    benchmarks.push_back(stats::benchmark_metrics(benchmark.outcomes[budget_index]));
  const auto mean = stats::mean_over_benchmarks(benchmarks);
  return {std::move(benchmarks), mean};
}

std::vector<stats::Cell> cells_of(const stats::AnswerMetrics& metrics) {
  std::vector<stats::Cell> cells;
  for (const double share : {metrics.accuracy, metrics.pass_at_n, metrics.majority, metrics.extraction})
    cells.push_back(stats::number_cell(100 * share, 2));
  cells.push_back(stats::number_cell(metrics.mean_tokens, 0));
  cells.push_back(stats::number_cell(100 * metrics.at_cap, 2));
  return cells;
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

std::vector<stats::Table> summary_tables(const Evaluation& evaluation) {
  std::vector<stats::Table> tables;
  for (size_t i = 0; i < evaluation.budgets.size(); ++i) {
    const std::string budget = std::to_string(evaluation.budgets[i]);
    stats::Table& table =
        tables.emplace_back(stats::Table{.id = "budget-" + budget,
                                         .caption = "Budget " + budget + " tokens, percent",
                                         .columns = {"benchmark", "questions", "accuracy", "pass@n",
                                                     "majority", "extracted", "tokens", "at cap"},
                                         .num_label_columns = 2});
    const auto [benchmarks, mean] = metrics_at(evaluation, i);
    const auto add_row = [&](const std::string& name, const std::string& size,
                             const stats::AnswerMetrics& metrics) {
      stats::TableRow row{.cells = {stats::text_cell(name), stats::text_cell(size)}};
      for (stats::Cell& cell : cells_of(metrics)) row.cells.push_back(std::move(cell));
      table.rows.push_back(std::move(row));
    };
    for (size_t b = 0; b < benchmarks.size(); ++b) {
      const auto& benchmark = evaluation.benchmarks[b];
      add_row(benchmark.name,
              std::to_string(benchmark.question_ids.size()) + " x " + std::to_string(benchmark.samples),
              benchmarks[b]);
    }
    add_row("mean", "", mean);
  }
  return tables;
}

}  // namespace ropd::eval
