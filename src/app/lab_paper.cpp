#include "app/lab_paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "app/difficult_queries.h"
#include "app/output.h"
#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "lab/benchmarks.h"
#include "lab/model_files.h"
#include "lab/models.h"
#include "report/page.h"
#include "study/study.h"
#include "train/plan.h"

namespace ropd::app {
namespace {

constexpr int kAllQueries = 1408;  // the full set; three operations alone give 2,160 problems

// Sizes that --fast reduces: only to see every table, not to believe it.
struct Scale {
  uint64_t responses, trigger_responses;  // an iteration; where a trigger is judged
  uint64_t grid_minibatch;                // of the grid's 110 updates
  int problems, samples;                  // of a benchmark in an evaluation
};
constexpr uint64_t kFastModels = 20;  // of the steps that make a model
Scale scale_of(const lab::LabOptions& options) {
  return options.is_fast ? Scale{48, 96, 4, 16, 2} : Scale{options.responses_per_iteration, 1920, 32, 128, 4};
}

// Tokens of the paper -> tokens of the laboratory.
const std::map<uint64_t, uint64_t> kBudgets = {
    {4096, 64}, {8192, 128}, {16384, 256}, {24576, 384}, {32768, 512}};

// Models of the paper -> folders of the laboratory. Sizes keep their order; both large teachers are one.
const std::map<std::string, std::string> kModels = {{"Qwen3-0.6B", "student"},
                                                    {"Qwen3-1.7B", "medium-student"},
                                                    {"Qwen3-8B", "large-student"},
                                                    {"Qwen3-4B-Instruct-2507", "teacher"},
                                                    {"Qwen3-30B-A3B-Instruct-2507", "teacher"},
                                                    {"JustRL-DeepSeek-1.5B", "second-teacher"}};

// Settings of the paper -> settings of the laboratory, where the laboratory is smaller: C = 3,520 in 110 updates
// of 32 for the grid's 14,080 in 110 of 128.
std::map<std::string, std::string> smaller_settings(const lab::LabOptions& options) {
  const Scale scale = scale_of(options);
  const auto responses = [](uint64_t count) {
    return "train.responses_per_iteration=" + std::to_string(count);
  };
  const auto bank = [](uint64_t count) { return "curriculum.bank.responses=" + std::to_string(count); };
  const auto first = [](int count) { return fmt::format("data.select={{first: {}}}", count); };
  return {{"data.select={count: 48, seed: 20260829}", first(48)},
          {"data.select={count: 8, seed: 20260829}", first(8)},
          {first(14080), first(kAllQueries)},
          {responses(14080), responses(110 * scale.grid_minibatch)},
          {bank(14080), bank(110 * scale.grid_minibatch)},
          {responses(1408), responses(11 * scale.grid_minibatch)},
          {responses(128), responses(scale.grid_minibatch)},
          {bank(4800), bank(10 * scale.responses)}};
}

uint64_t scaled(uint64_t tokens) {
  const auto found = kBudgets.find(tokens);
  if (found == kBudgets.end()) fail("a budget of ", tokens, " tokens has no counterpart in the laboratory");
  return found->second;
}

std::string scaled_column(const std::string& text) {
  study::Column column = study::parse_column(text);
  if (column.budget) column.budget = scaled(*column.budget);
  return study::column_text(column);
}

// Models that come with the program lie in `models`, others are made below the output.
Path model_path(const std::string& name, const lab::LabOptions& options) {
  const Path shipped = options.models / name;
  return std::filesystem::exists(shipped) ? shipped : options.output / "models" / name;
}

std::string in_miniature(const std::string& setting, const lab::LabOptions& options) {
  const size_t at = setting.find("=models/");
  if (at != std::string::npos) {
    const std::string name = setting.substr(at + 8);
    if (!kModels.contains(name)) fail("model ", name, " has no counterpart in the laboratory");
    return setting.substr(0, at + 1) + model_path(kModels.at(name), options).string();
  }
  const auto smaller = smaller_settings(options);
  const auto found = smaller.find(setting);
  return found == smaller.end() ? setting : found->second;
}

void scale_axes(study::StudyConfig& study, const lab::LabOptions& options) {
  std::vector<study::Axis> kept;
  for (study::Axis& axis : study.axes) {
    if (axis.repeats) continue;
    for (study::AxisValue& value : axis.values)
      for (std::string& setting : value.set) setting = in_miniature(setting, options);
    kept.push_back(axis);
  }
  study::Axis order{.name = "order", .repeats = true};
  for (uint64_t seed = 1; seed <= options.num_seeds; ++seed)
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

// Per-step resampling: an iteration is one minibatch, which the laboratory makes smaller.
bool is_grid(const study::StudyConfig& study) {
  const auto resamples = [](const std::vector<std::string>& settings) {
    return std::find(settings.begin(), settings.end(), "train.responses_per_iteration=128") != settings.end();
  };
  return resamples(study.set) ||
         std::any_of(study.methods.begin(), study.methods.end(),
                     [&](const study::Method& method) { return resamples(method.set); });
}

// Rows of orders that are not run go.
void drop_missing_orders(study::TableConfig& table, uint64_t num_seeds) {
  std::erase_if(table.rows, [&](const study::TableRowConfig& row) {
    const size_t at = row.of.rfind(", order ");
    return at != std::string::npos && std::stoull(row.of.substr(at + 8)) > num_seeds;
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

// All of them, or the one of this name.
std::vector<Path> study_files(const std::string& only) {
  std::vector<Path> files;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(studies_folder())) {
    names.push_back(entry.path().stem());
    if (only.empty() || entry.path().stem() == only) files.push_back(entry.path());
  }
  if (files.empty()) {
    std::sort(names.begin(), names.end());
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    fail("no study \"", only, "\" in ", studies_folder().string(), "; there are ", all);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Every model that the studies name and that did not come with the program.
bool make_missing_models(const std::vector<study::StudyConfig>& studies, const lab::LabOptions& options) {
  std::set<std::string> wanted;
  for (const study::StudyConfig& study : studies)
    for (const study::Axis& axis : study.axes)
      for (const study::AxisValue& value : axis.values)
        for (const std::string& setting : value.set)
          for (const lab::LabModel& model : lab::lab_models())
            if (setting.ends_with("/" + std::string(model.name))) wanted.insert(model.name);
  for (const lab::LabModel& model : lab::lab_models()) {
    if (!wanted.contains(model.name) ||
        std::filesystem::exists(model_path(model.name, options) / "model.safetensors"))
      continue;
    lab::ModelRecipe recipe = model.recipe();
    if (options.is_fast) recipe.steps /= kFastModels;
    log_info("--- making the ", model.name, ": supervised fine-tuning, ", recipe.steps, " steps");
    if (!lab::ensure_model(model, recipe, options.output / "models", options.output / "sft")) return false;
  }
  return true;
}

// Files that only describe the models: enough for a dry run before they are made.
void describe_missing_models(const lab::LabOptions& options) {
  const std::pair<const char*, ModelConfig> shapes[] = {{"medium-student", lab::medium_student_shape()},
                                                        {"large-student", lab::large_student_shape()},
                                                        {"second-teacher", lab::second_teacher_shape()}};
  for (const auto& [name, shape] : shapes)
    if (!std::filesystem::exists(model_path(name, options)))
      lab::write_lab_model_files(options.output / "models" / name, shape);
}

void write_world(const lab::LabOptions& options) {
  std::filesystem::create_directories(options.output / "data");
  const Scale scale = scale_of(options);
  lab::write_lab_data(options.output / "data", scale.problems, scale.samples, kAllQueries);
  lab::LabOptions whole = options;
  whole.is_fast = false;  // all iterations, of fewer responses
  whole.responses_per_iteration = scale.responses;
  train::TrainConfig recipe = lab::lab_train_config(whole);
  recipe.data.select.all = false;
  recipe.data.select.first = 48;
  write_file_atomically(options.output / "recipe.yaml", config_to_yaml(recipe, true));
}

// tab:anchors has a set that was chosen by what the initial student does; the paper's own is not published.
void add_difficult_queries(study::StudyConfig& study, const std::vector<std::string>& ids) {
  std::string list;
  for (const std::string& id : ids) list += (list.empty() ? "" : ", ") + id;
  for (study::Axis& axis : study.axes)
    if (axis.name == "queries")
      axis.values.push_back({"difficulty 48", {"data.select={ids: [" + list + "]}"}});
  for (study::TableConfig& table : study.tables)
    table.rows.push_back({"every step@difficulty 48", {23.98, 58.51}});
  study::ComparisonConfig comparison = study.comparisons.front();
  comparison.better = "every step@random 48";
  comparison.worse = "every step@difficulty 48";
  comparison.paper = 0.24;
  study.comparisons.push_back(comparison);
}

// NAME=DIRECTORY of every evaluated state, for the page with the figures.
void write_page(study::Study& study, const Path& page) {
  std::vector<std::string> arguments;
  const study::Plan plan = study.plan();
  std::map<size_t, std::string> row_of_run;
  for (const study::Row& row : study::rows_of(study.file().config, study.runs()))
    for (const size_t r : row.runs) row_of_run[r] = row.name;
  for (const study::PlannedEvaluation& planned : plan.evaluations)
    if (planned.run && planned.evaluation + 1 == study.file().config.evaluations.size())
      arguments.push_back(row_of_run[*planned.run] + "=" + study.result_directory(plan, planned).string());
  if (!arguments.empty()) report::write_report(arguments, page, study.file().config.name);
}

void print_dry_run(study::Study& study, bool as_json) {
  const std::string graph = study.dry_run(train::measure_flops());
  if (as_json)
    print_json({{"study", study.file().config.name}, {"text", graph}});
  else
    print_text("=== " + study.file().config.name + "\n" + graph + "\n");
}

std::string minutes(double seconds) { return fmt::format("{:.1f}", seconds / 60); }

}  // namespace

study::StudyConfig miniature_of(study::StudyConfig study, const lab::LabOptions& options) {
  const Path data = options.output / "data";
  study.base = "recipe.yaml";
  study.output = options.output.string();
  const Scale scale = scale_of(options);
  if (is_grid(study)) study.set.push_back(fmt::format("train.minibatch={}", scale.grid_minibatch));
  for (std::string& setting : study.set) setting = in_miniature(setting, options);
  for (study::Method& method : study.methods)
    for (std::string& setting : method.set) setting = in_miniature(setting, options);
  if (has_trigger(study))
    for (const std::string& setting :
         {fmt::format("train.responses_per_iteration={}", scale.trigger_responses),
          fmt::format("train.minibatch={}", scale.trigger_responses * 128 / 480),
          fmt::format("curriculum.bank.responses={}", 5 * scale.trigger_responses)})
      study.set.push_back(setting);
  scale_axes(study, options);
  for (study::EvaluationConfig& evaluation : study.evaluations) {
    evaluation.suite = (data / "suite.yaml").string();
    evaluation.data = data.string();
    evaluation.max_tokens = scaled(evaluation.max_tokens);
    for (uint64_t& budget : evaluation.budgets) budget = scaled(budget);
    evaluation.precision = train::Precision::f32;
  }
  for (study::DiagnosisConfig& diagnosis : study.diagnoses)
    for (std::string& setting : diagnosis.set) setting = in_miniature(setting, options);
  for (study::TableConfig& table : study.tables) {
    for (std::string& column : table.columns) column = scaled_column(column);
    drop_missing_orders(table, options.num_seeds);
  }
  std::erase_if(study.tables, [](const study::TableConfig& table) { return table.rows.empty(); });
  for (study::ComparisonConfig& comparison : study.comparisons)
    if (comparison.budget) comparison.budget = scaled(*comparison.budget);
  return study;
}

bool run_paper(const lab::LabOptions& options, const PaperOptions& paper) {
  write_world(options);
  const auto files = study_files(paper.only);
  std::vector<study::StudyConfig> configs;
  for (const Path& file : files) configs.push_back(miniature_of(study::load_study(file).config, options));
  if (paper.is_dry)
    describe_missing_models(options);
  else if (!make_missing_models(configs, options))
    return false;
  std::vector<std::unique_ptr<study::Study>> studies;
  study::Forecast forecast;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].stem() == "query_selection" && !paper.is_dry) {
      const auto ids = difficult_queries(model_path("student", options), options.output);
      if (!ids) return false;
      add_difficult_queries(configs[i], *ids);
    }
    const Path path = options.output / files[i].filename();
    write_file_atomically(path, config_to_yaml(configs[i]));
    studies.push_back(std::make_unique<study::Study>(path));
    if (paper.is_dry)
      print_dry_run(*studies.back(), paper.as_json);
    else
      studies.back()->expect_work(forecast);
  }
  if (paper.is_dry) return true;
  std::string summary = fmt::format("{:<18} {:>14} {:>14}\n", "study", "minutes", "processor min.");
  study::TimeSpent sum;
  for (size_t i = 0; i < studies.size(); ++i) {
    const study::Stopwatch watch;
    log_info("=== ", files[i].stem().string(), " (", i + 1, " of ", studies.size(), ")");
    if (!studies[i]->work({.accepts_changed_inputs = true, .forecast = &forecast})) return false;
    const study::Findings found = studies[i]->write_tables();
    write_page(*studies[i], options.output / (configs[i].name + ".html"));
    const study::TimeSpent spent = watch.spent();
    if (paper.as_json) {
      Json object = Json::parse(found.json);
      object["seconds"] = spent.seconds;
      object["processor_seconds"] = spent.processor_seconds;
      print_json(object);
    } else {
      print_text("\n=== " + files[i].stem().string() + "\n" + found.text);
    }
    std::fflush(stdout);
    summary += fmt::format("{:<18} {:>14} {:>14}\n", files[i].stem().string(), minutes(spent.seconds),
                           minutes(spent.processor_seconds));
    sum.seconds += spent.seconds;
    sum.processor_seconds += spent.processor_seconds;
  }
  summary +=
      fmt::format("{:<18} {:>14} {:>14}\n", "all", minutes(sum.seconds), minutes(sum.processor_seconds));
  if (!paper.as_json) print_text("\nTime of this process (what was there already took none):\n" + summary);
  return true;
}

}  // namespace ropd::app
