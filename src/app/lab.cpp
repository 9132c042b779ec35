// ropd lab: the paper in miniature. The laboratory is a world (models, problems) and a study; the study is
// worked on as any other, and its results are told as findings of the paper.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/lab_paper.h"
#include "app/output.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/sealed_json.h"
#include "base/stop.h"
#include "lab/models.h"
#include "lab/study_files.h"
#include "report/page.h"
#include "stats/evaluation.h"
#include "study/results.h"
#include "study/study.h"

namespace ropd::app {
namespace {

// The models that come with the program: lab/models of the source tree that build/ropd lies in.
Path shipped_models() {
  std::error_code ignored;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const Path models = program.parent_path().parent_path() / "lab" / "models";
  return std::filesystem::exists(models / "teacher" / "config.json") ? models : Path{};
}

// Teacher and student by supervised fine-tuning below the output; nothing after a stop request.
std::optional<Path> make_models(const Path& output) {
  const struct {
    const char* name;
    train::RunOutcome (*make)(const Path&, const lab::ModelRecipe&);
    lab::ModelRecipe recipe;
  } wanted[] = {{"teacher", lab::make_teacher, lab::teacher_recipe()},
                {"student", lab::make_student, lab::student_recipe()}};
  const Path models = output / "models";
  for (const auto& model : wanted) {
    if (std::filesystem::exists(models / model.name)) continue;
    const Path work = output / "sft" / model.name;
    log_info("--- making the ", model.name, ": supervised fine-tuning, ", model.recipe.steps, " steps (",
             work.string(), ")");
    if (model.make(work, model.recipe) != train::RunOutcome::done) return std::nullopt;
    std::filesystem::create_directories(models);
    std::filesystem::rename(work / "sft" / "model", models / model.name);
  }
  return models;
}

// Equal mean over benchmarks at every budget, with its standard error from the questions.
lab::RunResult result_of(const Path& evaluation) {
  const auto summary = stats::read_summary(evaluation);
  lab::RunResult result;
  for (const uint32_t budget : summary.budgets) {
    double accuracy = 0, variance = 0;
    const auto values = summary.values({}, budget);
    const auto benchmarks = static_cast<double>(values.size());
    for (const auto& benchmark : values) {
      const auto spread = stats::mean_and_deviation(benchmark.values);
      accuracy += spread.mean / benchmarks;
      variance += spread.deviation * spread.deviation / static_cast<double>(benchmark.values.size()) /
                  (benchmarks * benchmarks);
    }
    result.accuracy.push_back(accuracy);
    result.standard_error.push_back(std::sqrt(variance));
  }
  const Path path = evaluation / "summary.json";
  const Json json = parse_json(read_file(path), path.string());
  try {
    const Json& last = json.at("budgets").back();
    result.length = last.at("length").get<double>();
    result.at_cap = last.at("at_cap").get<double>();
  } catch (const Json::exception& error) {
    fail(path.string(), ": not the summary of an evaluation: ", error.what());
  }
  return result;
}

lab::LabResults results_of(study::Study& study, const std::vector<lab::LabMethod>& methods) {
  const study::Plan plan = study.plan();
  lab::LabResults results;
  for (const uint32_t budget : lab::lab_budgets()) results.budgets.push_back(budget);
  const train::TrainConfig& config = study.runs().front().config;
  results.num_updates = config.train.iterations * train::steps_per_iteration(config);
  results.methods.push_back({.name = "theta_0", .role = lab::Role::initial_student});
  results.methods.push_back({.name = "teacher", .role = lab::Role::teacher});
  for (const lab::LabMethod& method : methods)
    results.methods.push_back({.name = method.name, .role = method.role});
  for (const study::PlannedEvaluation& planned : plan.evaluations) {
    lab::RunResult result = result_of(study.store().evaluation(planned.id));
    size_t row = planned.is_teacher ? 1 : 0;
    if (planned.run) {
      row = 2 + study.runs()[*planned.run].method;
      result.seed = study.runs()[*planned.run].config.seed;
      result.tau = plan.runs[*planned.run].tau;
    }
    for (const study::PlannedDiagnosis& diagnosis : plan.diagnoses) {
      const bool is_of_run = planned.run && diagnosis.student == row - 1 &&
                             study.runs()[diagnosis.place].values == study.runs()[*planned.run].values;
      const bool is_initial = !planned.run && !planned.is_teacher && diagnosis.student == 0;
      if (!is_of_run && !is_initial) continue;
      const Path path = study.store().diagnosis(diagnosis.id);
      const study::DiagnosisCell cell = study::read_diagnosis(path);
      const Json values = unsealed(parse_json(read_file(path), path.string()), path.string());
      result.prefix_kl = cell.kl;
      // Where the report looks for it.
      const Path folder = study.result_directory(plan, planned);
      std::filesystem::create_directories(folder);
      write_file_atomically(folder / "diagnostics.json", Json{{"initial_prefixes", values}}.dump() + "\n");
      if (is_of_run) result.prefixes_less_likely = cell.less_likely;
    }
    results.methods[row].runs.push_back(std::move(result));
  }
  return results;
}

// NAME=DIRECTORY of every run, for the report.
std::vector<std::string> report_arguments(study::Study& study) {
  std::vector<std::string> arguments;
  const study::Plan plan = study.plan();
  for (const study::PlannedEvaluation& planned : plan.evaluations) {
    const std::string name = planned.run ? study.file().config.methods[study.runs()[*planned.run].method].name
                             : planned.is_teacher ? "teacher"
                                                  : "theta_0";
    arguments.push_back(name + "=" + study.result_directory(plan, planned).string());
  }
  return arguments;
}

void run(lab::LabOptions options, bool makes_models, bool is_paper, const PaperOptions& paper, bool as_json) {
  install_stop_handlers();
  const auto begin = std::chrono::steady_clock::now();
  if (options.models.empty() && !makes_models) options.models = shipped_models();
  if (options.models.empty()) {
    if (!makes_models)
      log_info(
          "no lab/models in the source tree of this program; teacher and student are made first, which "
          "takes minutes (--models DIR takes others)");
    const auto models = make_models(options.output);
    if (!models) end_stopped("stopped; the same command goes on where this one ended");
    options.models = *models;
  }
  std::filesystem::create_directories(options.output);
  if (is_paper) {
    if (!run_paper(options, paper)) end_stopped("stopped; the same command goes on where this one ended");
    return;
  }
  study::Study study(lab::write_lab_study(options));
  // Its options say what the laboratory is made from: with others it is another one.
  if (!study.work({.accepts_changed_inputs = true}))
    end_stopped("stopped; the same command goes on where this one ended");
  (void)study.write_tables();
  const lab::LabResults results = results_of(study, lab::lab_methods(options));
  const Path page = options.output / "report.html";
  report::write_report(report_arguments(study), page, "The laboratory");
  const std::string text =
      lab::console_table(results) + "\n" + lab::console_findings(results) + lab::console_note(results);
  write_file_atomically(options.output / "summary.txt", text);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (as_json) {
    Json object = lab::results_json(results);
    object["report"] = page.string();
    object["seconds"] = seconds;
    print_json(object);
    return;
  }
  print_text("\n" + text + "\nreport: " + page.string() + "   (" + format_duration(seconds) + ")\n");
}

}  // namespace

void add_lab(CLI::App& app) {
  struct Options {
    lab::LabOptions lab;
    std::string output = "runs/lab", models;
    bool makes_models = false, is_paper = false;
    PaperOptions paper;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("lab", "the paper in miniature: tiny models, R-OPD and its controls, report");
  command->add_flag("--fast", options->lab.is_fast,
                    "a first impression in about a minute; with --paper every table from a tenth of the "
                    "responses and one order, to see them and not to believe them");
  command->add_flag("--controls", options->lab.has_controls, "also the recent bank and the reverse order");
  CLI::Option* paper = command->add_flag(
      "--paper", options->is_paper,
      "every study of the paper in miniature (docs/paper.md), over --seeds orders (default 3)");
  command->add_option("--study", options->paper.only, "with --paper: only this one, e.g. onset")
      ->needs(paper);
  command->add_flag("--dry-run", options->paper.is_dry, "with --paper: what there is to do; nothing is made")
      ->needs(paper);
  CLI::Option* seeds =
      command->add_option("--seeds", options->lab.num_seeds, "data orders and sampling seeds");
  seeds->check(CLI::Range(1, 100))->capture_default_str();
  command->add_option("--out", options->output, "folder of everything")->capture_default_str();
  command
      ->add_option("--models", options->models,
                   "folder with teacher/ and student/ instead of the shipped ones")
      ->check(CLI::ExistingDirectory);
  command->add_flag("--make-models", options->makes_models,
                    "make teacher and student afresh by supervised fine-tuning");
  command->add_option("--learning-rate", options->lab.learning_rate, "of AdamW")
      ->check(number_in("a number above 0", [](double x) { return x > 0 && std::isfinite(x); }))
      ->capture_default_str();
  command->add_option("--responses", options->lab.responses_per_iteration, "an iteration")
      ->check(CLI::Range(8, 100000))
      ->capture_default_str();
  command->add_flag("--grouped", options->lab.grouped, "responses to one query stand together in a batch");
  command->footer(
      "Examples:\n  ropd lab --fast\n  ropd lab --seeds 3 --controls --out runs/lab3\nInterrupted, the same "
      "command goes on; with other settings only what they change is made again.");
  command->callback([options, seeds, command] {
    const bool has_default_output = options->output == "runs/lab";
    options->lab.output = options->output;
    if (has_default_output && options->is_paper) options->lab.output += "-paper";
    if (has_default_output && options->lab.is_fast) options->lab.output += "-fast";
    if (options->is_paper && !options->lab.is_fast && seeds->count() == 0) options->lab.num_seeds = 3;
    options->lab.models = options->models;
    const bool as_json = options->paper.as_json = wants_json(*command);
    run(options->lab, options->makes_models, options->is_paper, options->paper, as_json);
  });
}

}  // namespace ropd::app
