// ropd compare: methods against each other on the same questions (stats/comparison.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/yaml.h"
#include "eval/outcomes.h"
#include "report/chart_files.h"
#include "report/figures.h"
#include "stats/comparison.h"
#include "stats/scored_responses.h"

namespace ropd::app {
namespace {

constexpr const char* kExamples =
    R"(An evaluation is a folder with summary.json, or a run directory that holds one evaluation. Several runs of one method
(data orders) are joined by commas; they are paired with those of the other methods by data order and seed.
Intervals cover other questions and, with two runs or more of every method, other runs.
Examples:
  ropd compare runs/current/eval/final runs/ropd/eval/final
  ropd compare current=runs/c1,runs/c2,runs/c3 ropd=runs/r1,runs/r2,runs/r3 --budgets 16K,32K --measures all
  ropd compare --interaction runs/full-110 runs/8-110 runs/full-1 runs/8-1 --measures accuracy,pass@32
  ropd compare runs/current runs/ropd --format latex
  ropd compare runs/current runs/ropd --measures all --out comparison     # every table and figure, all formats)";

struct CompareOptions {
  std::vector<std::string> evaluations;
  std::vector<std::string> interaction;
  std::string budgets, measures = "accuracy", format = "text";
  Output out;
  bool allows_different_settings = false;
  stats::BootstrapConfig bootstrap;
};

// "order 2, seed 7" of the run whose evaluation this is; "" outside of a run directory.
std::string order_of(const stats::EvaluationSummary& evaluation) {
  const Path folder = std::filesystem::absolute(evaluation.path).lexically_normal().parent_path();
  const Path config = folder.parent_path().parent_path() / "config.yaml";
  if (folder.parent_path().filename() != "eval" || !std::filesystem::exists(config)) return "";
  const ConfigNode root = parse_yaml_document(read_file(config, uint64_t{1} << 20), config.string());
  std::string order, seed;
  for (const ConfigNode& item : root.items) {
    if (item.name == "seed") seed = item.scalar;
    if (item.name != "data") continue;
    for (const ConfigNode& inner : item.items)
      if (inner.name == "order_seed") order = inner.scalar;
  }
  return order.empty() && seed.empty() ? "" : "order " + order + ", seed " + seed;
}

// [LABEL=]DIR[,DIR...]
stats::Method read_method(const std::string& argument) {
  stats::Method method;
  std::string paths = argument;
  if (const size_t equals = argument.find('=');
      equals != std::string::npos && !std::filesystem::exists(argument)) {
    method.label = argument.substr(0, equals);
    paths = argument.substr(equals + 1);
  }
  const bool is_one = std::filesystem::exists(paths);  // a folder whose name holds a comma
  for (size_t begin = 0; begin <= paths.size();) {
    const size_t end = is_one ? paths.size() : std::min(paths.find(',', begin), paths.size());
    const Path folder = stats::find_evaluation(paths.substr(begin, end - begin));
    method.runs.push_back(stats::read_summary(folder));
    stats::check_scored_responses(folder);
    method.orders.push_back(order_of(method.runs.back()));
    begin = end + 1;
  }
  if (method.label.empty()) method.label = argument;
  return method;
}

std::vector<stats::Method> read_methods(const CompareOptions& options) {
  std::vector<stats::Method> methods;
  for (const auto& argument : options.interaction.empty() ? options.evaluations : options.interaction)
    methods.push_back(read_method(argument));
  const auto differences = stats::check_comparable(methods);
  if (!differences.empty() && !options.allows_different_settings)
    fail("compare: ", differences.front(),
         differences.size() > 1 ? " (and " + std::to_string(differences.size() - 1) + " more differences)"
                                : "",
         "; a difference in results may come from that (--allow-different-settings compares nevertheless)");
  for (const std::string& difference : differences) log_warning("settings differ: ", difference);
  stats::align_orders(methods);
  return methods;
}

std::vector<uint32_t> choose_budgets(const std::string& asked, const std::vector<stats::Method>& methods) {
  if (asked.empty()) return stats::common_budgets(methods);
  const auto budgets = eval::parse_budgets(asked);
  for (const stats::Method& method : methods)  // says which one was not scored at it
    for (const auto& run : method.runs)
      for (const uint32_t budget : budgets) (void)run.values({}, budget);
  return budgets;
}

std::vector<stats::Question> questions_of(const CompareOptions& options,
                                          const std::vector<stats::Method>& methods) {
  if (!options.interaction.empty()) return {stats::interaction_of(methods, 0, 1, 2, 3)};
  std::vector<stats::Question> questions;
  for (size_t i = 1; i < methods.size(); ++i) questions.push_back(stats::difference_of(methods, i, 0));
  return questions;
}

std::vector<stats::Table> tables_of(const std::vector<stats::Method>& methods,
                                    const std::vector<stats::EffectCurve>& curves,
                                    const CompareOptions& options) {
  std::vector<stats::Table> tables;
  size_t num_measures = 0;
  for (size_t begin = 0; begin < curves.size(); ++num_measures) {
    size_t end = begin;
    while (end < curves.size() && curves[end].measure == curves[begin].measure) ++end;
    const auto same = std::span(curves).subspan(begin, end - begin);
    tables.push_back(stats::method_table(methods, same.front().measure, same.front().budgets));
    tables.push_back(stats::curve_table(same, options.bootstrap));
    tables.push_back(stats::benchmark_table(same, same.front().budgets.back(), options.bootstrap));
    begin = end;
  }
  if (num_measures > 1)
    tables.push_back(stats::measure_table(curves, curves.front().budgets.back(), options.bootstrap));
  return tables;
}

Json interval_json(const stats::Interval& interval) {
  return {{"estimate", interval.estimate}, {"low", interval.low}, {"high", interval.high}};
}

Json effect_json(const stats::Effect& effect) {
  Json json = interval_json(effect.interval);
  json["questions"] = interval_json(effect.questions);
  json["includes_runs"] = effect.includes_runs;
  json["standard_error"] = effect.standard_error;
  json["p"] = effect.p;
  return json;
}

Json curve_json(const stats::EffectCurve& curve) {
  Json json = {{"title", curve.title},
               {"measure", curve.measure.name()},
               {"runs", curve.num_runs},
               {"is_paired", curve.pairing != stats::Pairing::none},
               {"budgets", Json::array()}};
  for (size_t i = 0; i < curve.budgets.size(); ++i) {
    Json line = {{"budget", curve.budgets[i]},
                 {"mean", effect_json(curve.effects[i].mean)},
                 {"benchmarks", Json::array()}};
    if (curve.over_runs[i].count > 1) line["deviation_over_runs"] = curve.over_runs[i].deviation;
    for (size_t b = 0; b < curve.benchmarks.size(); ++b) {
      Json benchmark = effect_json(curve.effects[i].benchmarks[b]);
      benchmark["name"] = curve.benchmarks[b];
      line["benchmarks"].push_back(benchmark);
    }
    json["budgets"].push_back(line);
  }
  return json;
}

Json methods_json(const std::vector<stats::Method>& methods, const std::vector<stats::Measure>& measures,
                  const std::vector<uint32_t>& budgets) {
  Json list = Json::array();
  for (const stats::Method& method : methods) {
    Json json = {{"label", method.label}, {"runs", method.runs.size()}, {"values", Json::array()}};
    for (const stats::Measure& measure : measures)
      for (const uint32_t budget : budgets) {
        std::vector<double> values;
        for (const auto& run : method.runs) values.push_back(stats::suite_mean(run.values(measure, budget)));
        const auto spread = stats::mean_and_deviation(values);
        Json value = {{"measure", measure.name()}, {"budget", budget}, {"mean", spread.mean}};
        if (spread.count > 1) value["deviation"] = spread.deviation;
        json["values"].push_back(value);
      }
    list.push_back(json);
  }
  return list;
}

// Every table in four formats, every measure's difference curve as SVG with its data.
void write_all(const Path& directory, const std::vector<stats::Table>& tables,
               const std::vector<stats::EffectCurve>& curves) {
  for (const stats::Table& table : tables) stats::write_table_files(directory, table);
  for (size_t begin = 0; begin < curves.size();) {
    size_t end = begin;
    while (end < curves.size() && curves[end].measure == curves[begin].measure) ++end;
    report::write_chart_files(directory,
                              report::difference_chart(std::span(curves).subspan(begin, end - begin)));
    begin = end;
  }
}

void run_compare(const CLI::App& command, const CompareOptions& options) {
  if (options.evaluations.empty() == options.interaction.empty())
    throw CLI::ValidationError("two or more evaluations, or --interaction with four, are needed");
  if (options.interaction.empty() && options.evaluations.size() < 2)
    throw CLI::ValidationError("one evaluation alone cannot be compared");
  const auto format = stats::parse_table_format(options.format);
  const auto measures = stats::parse_measures(options.measures);
  check_output_folder(options.out);
  const auto methods = read_methods(options);
  const auto budgets = choose_budgets(options.budgets, methods);
  const auto curves =
      stats::answer(methods, questions_of(options, methods), measures, budgets, options.bootstrap);
  const auto tables = tables_of(methods, curves, options);
  if (!options.out.path.empty()) write_all(options.out.path, tables, curves);
  if (wants_json(command)) {
    Json json = {{"draws", options.bootstrap.draws},
                 {"seed", options.bootstrap.seed},
                 {"coverage", options.bootstrap.coverage},
                 {"methods", methods_json(methods, measures, budgets)},
                 {"effects", Json::array()}};
    for (const stats::EffectCurve& curve : curves) json["effects"].push_back(curve_json(curve));
    print_json(json);
    return;
  }
  for (size_t i = 0; i < tables.size(); ++i)
    std::printf("%s%s", i ? "\n" : "", stats::render(tables[i], format).c_str());
}

}  // namespace

void add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      app.add_subcommand("compare", "differences between evaluations of the same questions, with intervals");
  command->add_option("evaluations", options->evaluations,
                      "[LABEL=]DIR[,DIR...]; differences are against the first");
  command->add_option("--interaction", options->interaction, "four evaluations A B C D: (A - B) - (C - D)")
      ->expected(4);
  command->add_option("--budgets,--budget", options->budgets,
                      "tokens, 32768 or 16K,32K (default: all that every evaluation has)");
  command
      ->add_option(
          "--measures", options->measures,
          "accuracy, pass@n, pass@K, majority, extraction, length, at_cap, extracted, extracted_at_cap, "
          "unextracted, unextracted_at_cap; or all")
      ->capture_default_str();
  command->add_option("--format", options->format, "of the tables: text, markdown, latex or csv")
      ->check(CLI::IsMember({"text", "markdown", "latex", "csv"}))
      ->capture_default_str();
  command->add_option("--out", options->out.path,
                      "folder for every table (txt, md, tex, csv) and difference curve (svg, csv, gp)");
  command->add_flag("--overwrite", options->out.overwrites, "write into a folder that holds files already");
  command->add_flag("--allow-different-settings", options->allows_different_settings,
                    "compare although temperature, cap, grader, samples or prompts differ");
  command->add_option("--draws", options->bootstrap.draws, "bootstrap draws")
      ->check(CLI::Range(100, 10000000))
      ->capture_default_str();
  command->add_option("--seed", options->bootstrap.seed, "of the draws")
      ->check(is_seed())
      ->capture_default_str();
  command->footer(kExamples);
  command->callback([command, options] { run_compare(*command, *options); });
}

}  // namespace ropd::app
