#include "app/lab_paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "lab/benchmarks.h"
#include "study/study.h"

namespace ropd::app {
namespace {

constexpr int kAllQueries = 1408;  // the full set; three operations alone give 2,160 problems
constexpr uint64_t kTriggerResponses = 1920;

// Tokens of the paper -> tokens of the laboratory.
const std::map<uint64_t, uint64_t> kBudgets = {
    {4096, 64}, {8192, 128}, {16384, 256}, {24576, 384}, {32768, 512}};

uint64_t scaled(uint64_t tokens) {
  const auto found = kBudgets.find(tokens);
  if (found == kBudgets.end()) fail("a budget of ", tokens, " tokens has no counterpart in the laboratory");
  return found->second;
}

// Axes over models shrink to their first value: the laboratory has one student and one teacher.
bool is_over_models(const study::Axis& axis) { return axis.name == "student" || axis.name == "teacher"; }

// "R-OPD@0.6B" without the values of axes that are gone; nothing when it names another model.
std::optional<std::string> side_in_miniature(const std::string& side, const std::vector<study::Axis>& gone) {
  std::string rest = side;
  for (const study::Axis& axis : gone)
    for (size_t v = 0; v < axis.values.size(); ++v) {
      const size_t at = rest.find("@" + axis.values[v].name);
      if (at == std::string::npos) continue;
      if (v > 0) return std::nullopt;
      rest.erase(at, axis.values[v].name.size() + 1);
    }
  return rest;
}

void shrink_axes(study::StudyConfig& study, std::vector<study::Axis>& gone, uint64_t num_seeds) {
  std::vector<study::Axis> kept;
  for (study::Axis& axis : study.axes) {
    if (is_over_models(axis)) {
      gone.push_back(axis);
      continue;
    }
    if (axis.repeats) continue;
    for (study::AxisValue& value : axis.values)
      if (axis.name == "queries")
        value.set = {fmt::format("data.select={{first: {}}}", value.name == "full" ? kAllQueries
                                                              : value.name == "8"  ? 8
                                                                                   : 48)};
    kept.push_back(axis);
  }
  study::Axis order{.name = "order", .repeats = true};
  for (uint64_t seed = 1; seed <= num_seeds; ++seed)
    order.values.push_back(
        {std::to_string(seed), {fmt::format("seed={}", seed), fmt::format("data.order_seed={}", seed)}});
  kept.push_back(order);
  study.axes = std::move(kept);
}

bool has_trigger(const study::StudyConfig& study) {
  return std::any_of(study.methods.begin(), study.methods.end(), [](const study::Method& method) {
    return std::any_of(method.stages.begin(), method.stages.end(),
                       [](const train::StageConfig& stage) { return stage.until.has_value(); });
  });
}

Path studies_folder() {
  std::error_code ignored;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const Path folder = program.parent_path().parent_path() / "studies";
  if (!std::filesystem::is_directory(folder))
    fail(folder.string(), ": not there; the paper's studies are read from the source tree of this program");
  return folder;
}

// Data with the full set of queries; benchmarks share no problem with it.
void write_paper_data(const Path& folder) {
  std::filesystem::create_directories(folder);
  lab::write_lab_data(folder, /*problems_each=*/128, /*samples_each=*/4, kAllQueries);
}

}  // namespace

study::StudyConfig miniature_of(study::StudyConfig study, const lab::LabOptions& options) {
  const Path data = options.output / "data";
  study.base = "recipe.yaml";
  study.output = options.output.string();
  study.set.insert(study.set.begin(), "data.select={first: 48}");
  if (has_trigger(study))
    for (const std::string& setting : {fmt::format("train.responses_per_iteration={}", kTriggerResponses),
                                       fmt::format("train.minibatch={}", kTriggerResponses * 128 / 480),
                                       fmt::format("curriculum.bank.responses={}", 5 * kTriggerResponses)})
      study.set.push_back(setting);
  std::vector<study::Axis> gone;
  shrink_axes(study, gone, options.num_seeds);
  for (study::EvaluationConfig& evaluation : study.evaluations) {
    evaluation.suite = (data / "suite.yaml").string();
    evaluation.data = data.string();
    evaluation.max_tokens = scaled(evaluation.max_tokens);
    for (uint64_t& budget : evaluation.budgets) budget = scaled(budget);
    evaluation.precision = train::Precision::f32;
  }
  std::vector<study::ComparisonConfig> comparisons;
  for (study::ComparisonConfig comparison : study.comparisons) {
    const auto better = side_in_miniature(comparison.better, gone),
               worse = side_in_miniature(comparison.worse, gone);
    if (!better || !worse) continue;
    comparison.better = *better;
    comparison.worse = *worse;
    if (comparison.budget) comparison.budget = scaled(*comparison.budget);
    comparisons.push_back(comparison);
  }
  study.comparisons = std::move(comparisons);
  return study;
}

bool run_paper(const lab::LabOptions& options, const std::string& only) {
  write_paper_data(options.output / "data");
  train::TrainConfig recipe = lab::lab_train_config(options);
  recipe.data.select.all = false;
  recipe.data.select.first = 48;
  write_file_atomically(options.output / "recipe.yaml", config_to_yaml(recipe, true));
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(studies_folder()))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string summary;
  size_t num_run = 0;
  for (const Path& file : files) {
    if (!only.empty() && file.stem() != only) continue;
    ++num_run;
    const auto begin = std::chrono::steady_clock::now();
    const auto study_config = miniature_of(study::load_study(file).config, options);
    const Path path = options.output / file.filename();
    write_file_atomically(path, config_to_yaml(study_config));
    study::Study study(path);
    log_info("=== ", file.stem().string(), " (", num_run, " of ", only.empty() ? files.size() : 1, ")");
    if (!study.work({})) return false;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("\n=== %s (%s)\n%s", file.stem().c_str(), format_duration(seconds).c_str(),
                study.write_tables().c_str());
    std::fflush(stdout);
    summary += fmt::format("{:<18} {}\n", file.stem().string(), format_duration(seconds));
  }
  if (num_run == 0) fail("no study \"", only, "\" in ", studies_folder().string());
  std::printf("\nstudy              time\n%s", summary.c_str());
  return true;
}

}  // namespace ropd::app
