// ropd eval: generate what a suite asks for, or take saved responses, and score them at every budget.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "eval/evaluate.h"
#include "eval/outcomes.h"
#include "eval/responses.h"
#include "eval/samples.h"
#include "eval/suite.h"
#include "eval/summary.h"
#include "io/files_in_use.h"
#include "io/model_directory.h"
#include "model/weights.h"
#include "rollout/crew_generator.h"
#include "rollout/fingerprint.h"
#include "rollout/local_generator.h"
#include "stats/evaluation.h"
#include "train/teacher_translation.h"

namespace ropd::app {
namespace {

constexpr const char* kExamples =
    R"(Suites: three (AIME24, AIME25, AMC23), eight, or a YAML file (docs/formats.md). Interrupted, the same command goes on.
Examples:
  ropd eval --model models/Qwen3-0.6B --suite three --data benchmarks --max-tokens 16384 --out runs/base/eval/three
  ropd eval --model models/Qwen3-0.6B --suite eight --data benchmarks --max-tokens 32768 --budgets 4K,8K,16K,24K,32K --out eval/base
  ropd eval --model models/Qwen3-0.6B --suite eight --data benchmarks --budgets 4K,32K --out eval/base --rescore)";

struct EvalOptions {
  std::string model, base, suite, data = ".", out, budgets, precision = "bf16";
  int64_t max_tokens = 32768;
  rollout::SamplingConfig sampling;
  uint64_t seed = 1;
  double memory_gb = 0;
  bool rescores = false, allows_missing = false, is_strict = false, overwrites = false;
  // of the responses kept for reading
  std::string teacher, student, teacher_base, student_base;
  size_t num_samples = eval::kNumSamples;
};

// Who is asked about the responses kept for reading: the evaluated model alone, or beside the other one of the pair.
eval::ScoreResponses scorer_of(const EvalOptions& options, const io::ModelDirectory& directory,
                               const model::Weights& weights) {
  const auto precision = kernels::precision_named(options.precision);
  const std::string& other_path = options.teacher.empty() ? options.student : options.teacher;
  if (other_path.empty()) return eval::score_by(weights, std::nullopt, precision);
  const bool is_student = !options.teacher.empty();
  const auto other_directory = std::make_shared<const io::ModelDirectory>(
      other_path, is_student ? options.teacher_base : options.student_base);
  const auto other = model::map_weights(other_directory);
  model::check_finite(other, other_path);
  const model::Weights& student = is_student ? weights : other;
  const model::Weights& teacher = is_student ? other : weights;
  const Path own_text = directory.text_path(), other_text = other_directory->text_path();
  const auto map = train::teacher_vocabulary(is_student ? own_text : other_text, student.config,
                                             is_student ? other_text : own_text, teacher.config);
  if (!map) return eval::score_by(student, teacher, precision);
  if (!map->is_identity())
    fail(other_path, ": has another tokenizer than ", options.model,
         "; responses are shown under both models only when their tokens are the same");
  return eval::score_by(student, teacher, precision,
                        train::translate(map, student.config, teacher.config, {}));
}

// A finished evaluation with another grading stays unless its replacement was asked for.
void check_summary(const EvalOptions& options, const eval::GradingConfig& grading) {
  const Path path = Path(options.out) / "summary.json";
  if (options.rescores || options.overwrites || !std::filesystem::exists(path)) return;
  const stats::EvaluationSummary summary = stats::read_summary(path);
  std::string grader = "reference";  // where nothing is known of the responses
  for (const auto& [name, value] : summary.settings)
    if (name == "grader") grader = value;
  if (summary.budgets != grading.budgets || grader != (options.is_strict ? "strict" : "reference"))
    fail(path.string(),
         ": holds the results of other budgets or another grader; --rescore scores the saved responses anew "
         "and replaces it");
}

// What an evaluation consists of; its folder may hold more.
void remove_evaluation(const Path& folder) {
  for (const char* name : {"summary.json", "summary.md", "responses.jsonl", "generation.json"})
    std::filesystem::remove(folder / name);
}

// Fills the folder; ends the program when a stop request came first.
void generate(comm::Crew& crew, const EvalOptions& options, const eval::Suite& suite,
              const text::Tokenizer& tokenizer) {
  install_stop_handlers();
  const auto directory = std::make_shared<const io::ModelDirectory>(options.model, options.base);
  io::FilesInUse files;
  files.add(io::model_files(options.model, options.base));
  const auto chat_template = text::ChatTemplate::load(directory->text_path());
  const auto weights = model::map_weights(directory);
  const auto score = scorer_of(options, *directory, weights);  // refuses before anything is generated
  rollout::EngineConfig config;
  config.max_response_tokens = options.max_tokens;
  config.eos_ids = directory->generation().eos_ids;
  config.sampling = options.sampling;
  config.memory_bytes = uint64_t(options.memory_gb * 1e9);
  rollout::LocalGenerator engine(weights, kernels::precision_named(options.precision), config);
  const std::string fingerprint = rollout::weights_fingerprint(weights);
  rollout::CrewGenerator generator(engine, crew);
  require_same_sampling(crew, options.precision, fingerprint, config);
  if (!crew.leads()) assist(crew);
  mention_tiles({{"--precision ", engine.precision()}});
  crew.expect_service();
  if (options.overwrites) remove_evaluation(options.out);
  const auto result = eval::generate_responses(
      generator, suite, tokenizer, chat_template, options.out,
      {options.model, fingerprint, options.seed, options.suite, options.data}, [&] { files.check(); });
  if (!result.is_finished)
    end_stopped("stopped with " + std::to_string(result.num_kept + result.run.num_done) + " of " +
                std::to_string(suite.num_responses()) + " responses in " + options.out +
                "; the same command goes on from here");
  eval::write_samples(options.out, suite, tokenizer, options.num_samples, score);
}

// Those given; otherwise the longest response of the generation.
std::vector<uint32_t> choose_budgets(const EvalOptions& options) {
  if (!options.budgets.empty()) return eval::parse_budgets(options.budgets);
  const Json record = options.rescores ? eval::read_generation_record(options.out) : Json();
  const Json max_tokens = record.is_object() ? record.value("max_tokens", Json()) : Json();
  const bool is_known = max_tokens.is_number_unsigned() && max_tokens > 0 && max_tokens <= (1 << 24);
  return {is_known ? max_tokens.get<uint32_t>() : uint32_t(options.max_tokens)};
}

void run_eval(const CLI::App& command, const EvalOptions& options) {
  eval::GradingConfig grading;
  grading.budgets = choose_budgets(options);
  grading.grader = options.is_strict ? grading::Mode::strict : grading::Mode::reference;
  grading.allows_missing = options.allows_missing;
  if (!options.rescores && grading.budgets.back() > options.max_tokens)
    throw CLI::ValidationError("a budget of " + std::to_string(grading.budgets.back()) +
                               " tokens is above --max-tokens " + std::to_string(options.max_tokens));
  if (options.allows_missing && !options.rescores) throw CLI::ValidationError("--partial needs --rescore");
  if (options.overwrites && options.rescores)
    throw CLI::ValidationError("--overwrite samples anew, --rescore does not: expected one of them");
  if (options.rescores) require_alone("eval --rescore");
  comm::Crew& crew = options.rescores ? comm::solo_crew() : join_crew();
  eval::Suite suite;
  std::optional<text::Tokenizer> tokenizer_there;
  leader_first(crew, [&] {
    if (crew.leads()) check_summary(options, grading);
    suite = eval::load_suite(options.suite, options.data);
    tokenizer_there.emplace(text::Tokenizer::load(io::text_directory(options.model, options.base)));
  });
  const text::Tokenizer& tokenizer = *tokenizer_there;
  if (!options.rescores) generate(crew, options, suite, tokenizer);
  eval::check_generated(options.out);
  const Path responses_path = Path(options.out) / "responses.jsonl";
  if (!std::filesystem::exists(responses_path))
    fail(responses_path.string(), ": no such file (nothing generated yet?)");
  const eval::ResponseFile responses(responses_path, suite);
  if (responses.has_torn_line())
    log_warning(responses_path.string(), ": the last line is incomplete and is left out");
  const auto evaluation = eval::grade_responses(suite, responses, tokenizer, grading);
  Json about = eval::read_generation_record(options.out);
  if (about.is_object()) about["grader"] = options.is_strict ? "strict" : "reference";
  eval::write_evaluation(options.out, evaluation, about);
  if (evaluation.num_missing > 0)
    log_warning(evaluation.num_missing, " of ", suite.num_responses(), " responses are missing");
  if (wants_json(command))
    print_json(eval::summary_json(evaluation, about));
  else
    for (const stats::Table& table : eval::summary_tables(evaluation))
      print_text(stats::to_text(table) + "\n");
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command =
      app.add_subcommand("eval", "sample a model on benchmarks and score it at token budgets");
  command
      ->add_option("--model", options->model,
                   "model or adapter directory, checkpoint or run; with --rescore only its tokenizer is read")
      ->required()
      ->transform(to_model());
  add_base(*command, "--base", options->base);
  command->add_option("--suite", options->suite, "three, eight or a YAML file")->required();
  command->add_option("--data", options->data, "folder of the benchmark files")->capture_default_str();
  command
      ->add_option("--out", options->out,
                   "folder for responses.jsonl, generation.json, samples.jsonl, summary.json, summary.md")
      ->required();
  command->add_option("--max-tokens", options->max_tokens, "longest response")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command->add_option("--budgets", options->budgets,
                      "score cuts at these lengths, 4096,8192 or 4K,8K (default: --max-tokens)");
  command->add_option("--temperature", options->sampling.temperature, "of sampling")
      ->check(is_temperature())
      ->capture_default_str();
  command->add_option("--top-p", options->sampling.top_p, "of sampling")
      ->check(number_in("a number in (0, 1]", [](double x) { return x > 0 && x <= 1; }))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "of sampling")->check(is_seed())->capture_default_str();
  command->add_option("--precision", options->precision, "of matrix products")
      ->check(is_precision())
      ->capture_default_str();
  command->add_option("--memory-gb", options->memory_gb, "for keys and values (default: what is free)")
      ->check(is_memory_gb());
  auto* teacher = command
                      ->add_option("--teacher", options->teacher,
                                   "in samples.jsonl, what this model says of every token too")
                      ->transform(to_model());
  command->add_option("--student", options->student, "the same when --model is the teacher")
      ->transform(to_model())
      ->excludes(teacher);
  add_base(*command, "--teacher-base", options->teacher_base);
  add_base(*command, "--student-base", options->student_base);
  command
      ->add_option("--samples", options->num_samples, "responses kept for reading in samples.jsonl; 0 = none")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_flag("--rescore", options->rescores, "score saved responses, generate nothing");
  command->add_flag("--partial", options->allows_missing, "with --rescore: score what is there");
  command->add_flag("--overwrite", options->overwrites, "remove the evaluation in --out and sample anew");
  command->add_flag("--strict", options->is_strict,
                    "grade without the reference grader's known false positives");
  command->footer(kExamples);
  command->callback([command, options] { run_eval(*command, *options); });
}

}  // namespace ropd::app
