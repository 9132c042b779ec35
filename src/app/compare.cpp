// ropd compare: paired question bootstrap between evaluations (method.md section 9).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/commands.h"
#include "base/error.h"
#include "base/json.h"
#include "eval/summary.h"
#include "stats/bootstrap.h"
#include "stats/metrics.h"

namespace ropd::app {
namespace {

constexpr const char* kExamples =
    R"(An evaluation is a folder with summary.json, or a run directory that holds one evaluation. Several runs of one method are
joined by commas: their mean and sample deviation are shown, and each question's accuracy is averaged over them.
Examples:
  ropd compare runs/current/eval/final runs/ropd/eval/final
  ropd compare current=runs/c1,runs/c2,runs/c3 ropd=runs/r1,runs/r2,runs/r3 --budget 32K
  ropd compare --interaction runs/full-110 runs/8-110 runs/full-1 runs/8-1)";

struct CompareOptions {
  std::vector<std::string> evaluations;
  std::vector<std::string> interaction;
  std::string budget;
  stats::BootstrapConfig bootstrap;
};

// One method: one evaluation or several runs of it.
struct Group {
  std::string label;
  std::vector<eval::EvaluationSummary> runs;

  // Accuracy per question, mean over the runs.
  std::vector<stats::BenchmarkValues> at_budget(uint32_t budget) const {
    auto mean = runs.front().at_budget(budget);
    for (size_t run = 1; run < runs.size(); ++run) {
      const auto values = runs[run].at_budget(budget);
      for (size_t b = 0; b < mean.size(); ++b)
        for (size_t q = 0; q < mean[b].values.size(); ++q) mean[b].values[q] += values[b].values[q];
    }
    for (auto& benchmark : mean)
      for (double& value : benchmark.values) value /= double(runs.size());
    return mean;
  }
};

// DIR itself, or the only evaluation below DIR/eval.
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

// [LABEL=]DIR[,DIR...]
Group read_group(const std::string& argument) {
  Group group;
  std::string paths = argument;
  if (const size_t equals = argument.find('=');
      equals != std::string::npos && !std::filesystem::exists(argument)) {
    group.label = argument.substr(0, equals);
    paths = argument.substr(equals + 1);
  }
  const bool is_one = std::filesystem::exists(paths);  // a folder whose name holds a comma
  for (size_t begin = 0; begin <= paths.size();) {
    const size_t end = is_one ? paths.size() : std::min(paths.find(',', begin), paths.size());
    group.runs.push_back(eval::read_summary(find_evaluation(paths.substr(begin, end - begin))));
    begin = end + 1;
  }
  if (group.label.empty()) group.label = argument;
  for (const auto& run : group.runs) eval::check_same_questions(group.runs.front(), run);
  return group;
}

std::vector<Group> read_groups(const std::vector<std::string>& arguments) {
  std::vector<Group> groups;
  for (const auto& argument : arguments) {
    groups.push_back(read_group(argument));
    eval::check_same_questions(groups.front().runs.front(), groups.back().runs.front());
  }
  return groups;
}

// The given budget, or the largest that every evaluation has.
uint32_t choose_budget(const std::string& asked, const std::vector<Group>& groups) {
  if (!asked.empty()) {
    const auto budgets = eval::parse_budgets(asked);
    if (budgets.size() != 1) throw CLI::ValidationError("--budget takes one number of tokens");
    return budgets.front();
  }
  const auto& first = groups.front().runs.front().budgets;
  for (auto budget = first.rbegin(); budget != first.rend(); ++budget) {
    bool is_common = true;
    for (const auto& group : groups)
      for (const auto& run : group.runs)
        is_common &= std::count(run.budgets.begin(), run.budgets.end(), *budget) > 0;
    if (is_common) return *budget;
  }
  fail("compare: the evaluations have no budget in common (`ropd eval --rescore --budgets` adds budgets)");
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / double(values.size());
}

// Accuracy of every run on every benchmark, and the equal mean last: [benchmarks + 1] of mean and deviation
// over the runs.
std::vector<stats::MeanDeviation> accuracies_of(const Group& group, uint32_t budget) {
  const size_t num_benchmarks = group.runs.front().benchmarks.size();
  std::vector<std::vector<double>> by_benchmark(num_benchmarks + 1);  // [benchmarks + 1][runs]
  for (const auto& run : group.runs) {
    double sum = 0;
    const auto values = run.at_budget(budget);
    for (size_t b = 0; b < num_benchmarks; ++b) {
      by_benchmark[b].push_back(mean_of(values[b].values));
      sum += by_benchmark[b].back();
    }
    by_benchmark[num_benchmarks].push_back(sum / double(num_benchmarks));
  }
  std::vector<stats::MeanDeviation> result;
  for (const auto& values : by_benchmark) result.push_back(stats::mean_and_deviation(values));
  return result;
}

std::string padded(const std::string& text, size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

// Adds the accuracy table of the groups to `text` and their numbers to `json`.
void add_accuracies(std::string& text, Json& json, const std::vector<Group>& groups, uint32_t budget) {
  const auto& benchmarks = groups.front().runs.front().benchmarks;
  size_t width = 10;
  for (const auto& group : groups) width = std::max(width, group.label.size() + 2);
  text += padded("accuracy", width);
  for (const auto& benchmark : benchmarks) text += padded(benchmark.name, 16);
  text += "mean\n";
  for (const auto& group : groups) {
    const auto accuracies = accuracies_of(group, budget);
    Json line = {{"label", group.label}, {"runs", group.runs.size()}, {"benchmarks", Json::array()}};
    text += padded(group.label, width);
    for (size_t i = 0; i < accuracies.size(); ++i) {
      char cell[48];
      if (group.runs.size() > 1)
        std::snprintf(cell, sizeof cell, "%.2f +- %.2f", 100 * accuracies[i].mean,
                      100 * accuracies[i].deviation);
      else
        std::snprintf(cell, sizeof cell, "%.2f", 100 * accuracies[i].mean);
      text += i < benchmarks.size() ? padded(cell, 16) : std::string(cell) + "\n";
      Json value = {{"accuracy", accuracies[i].mean}};
      if (group.runs.size() > 1) value["deviation"] = accuracies[i].deviation;
      if (i < benchmarks.size()) {
        value["name"] = benchmarks[i].name;
        line["benchmarks"].push_back(value);
      } else {
        line["mean"] = value;
      }
    }
    json["evaluations"].push_back(line);
  }
}

Json interval_json(const stats::Interval& interval) {
  return {{"estimate", interval.estimate}, {"low", interval.low}, {"high", interval.high}};
}

std::string interval_line(const std::string& name, const stats::Interval& interval) {
  char line[96];
  std::snprintf(line, sizeof line, "%+7.2f  [%+.2f, %+.2f]\n", 100 * interval.estimate, 100 * interval.low,
                100 * interval.high);
  return "  " + padded(name, 16) + line;
}

// Bootstraps the values and adds one block to `text`; returns its JSON.
Json add_intervals(std::string& text, const std::string& title,
                   const std::vector<stats::BenchmarkValues>& values, const stats::BootstrapConfig& config) {
  const auto result = stats::bootstrap(values, config);
  Json json = {{"benchmarks", Json::array()}, {"mean", interval_json(result.mean)}};
  text += "\n" + title + "\n";
  for (size_t b = 0; b < values.size(); ++b) {
    text += interval_line(values[b].name, result.benchmarks[b]);
    Json line = interval_json(result.benchmarks[b]);
    line["name"] = values[b].name;
    json["benchmarks"].push_back(line);
  }
  text += interval_line("mean", result.mean);
  return json;
}

void run_compare(const CLI::App& command, const CompareOptions& options) {
  if (options.evaluations.empty() == options.interaction.empty())
    throw CLI::ValidationError("two or more evaluations, or --interaction with four, are needed");
  if (options.interaction.empty() && options.evaluations.size() < 2 &&
      options.evaluations.front().find(',') == std::string::npos)
    throw CLI::ValidationError("one evaluation alone cannot be compared");
  const auto groups = read_groups(options.interaction.empty() ? options.evaluations : options.interaction);
  const uint32_t budget = choose_budget(options.budget, groups);
  Json json = {{"budget", budget},
               {"draws", options.bootstrap.draws},
               {"seed", options.bootstrap.seed},
               {"coverage", options.bootstrap.coverage},
               {"evaluations", Json::array()},
               {"differences", Json::array()}};
  std::string text = "budget " + std::to_string(budget) + " tokens; percent; " +
                     std::to_string(options.bootstrap.draws) + " paired draws of questions, seed " +
                     std::to_string(options.bootstrap.seed) + ", 95% intervals\n\n";
  add_accuracies(text, json, groups, budget);
  std::vector<std::vector<stats::BenchmarkValues>> values;
  for (const auto& group : groups) values.push_back(group.at_budget(budget));
  if (!options.interaction.empty()) {
    const std::string title = "interaction (" + groups[0].label + " - " + groups[1].label + ") - (" +
                              groups[2].label + " - " + groups[3].label + ")";
    json["interaction"] = add_intervals(
        text, title,
        stats::subtract(stats::subtract(values[0], values[1]), stats::subtract(values[2], values[3])),
        options.bootstrap);
  }
  for (size_t i = 1; i < groups.size() && options.interaction.empty(); ++i) {
    Json difference = add_intervals(text, groups[i].label + " - " + groups[0].label,
                                    stats::subtract(values[i], values[0]), options.bootstrap);
    difference["left"] = groups[i].label;
    difference["right"] = groups[0].label;
    json["differences"].push_back(difference);
  }
  if (wants_json(command))
    std::printf("%s\n", json.dump().c_str());
  else
    std::printf("%s", text.c_str());
}

}  // namespace

void add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      app.add_subcommand("compare", "paired bootstrap between evaluations of the same questions");
  command->add_option("evaluations", options->evaluations,
                      "[LABEL=]DIR[,DIR...]; differences are against the first");
  command->add_option("--interaction", options->interaction, "four evaluations A B C D: (A - B) - (C - D)")
      ->expected(4);
  command->add_option("--budget", options->budget,
                      "tokens, 32768 or 32K (default: the largest that all have)");
  command->add_option("--draws", options->bootstrap.draws, "bootstrap draws")
      ->check(CLI::Range(100, 10000000))
      ->capture_default_str();
  command->add_option("--seed", options->bootstrap.seed, "of the draws")->capture_default_str();
  command->footer(kExamples);
  command->callback([command, options] { run_compare(*command, *options); });
}

}  // namespace ropd::app
