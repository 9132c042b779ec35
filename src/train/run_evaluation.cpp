#include "train/run_evaluation.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "eval/evaluate.h"
#include "eval/responses.h"
#include "eval/samples.h"
#include "eval/suite.h"
#include "stats/answer_metrics.h"

namespace ropd::train {

bool is_evaluation_due(const EvalConfig& config, uint64_t iteration, uint64_t total_iterations) {
  if (!config.suite) return false;
  return iteration == total_iterations || (config.every > 0 && iteration % config.every == 0);
}

void check_evaluation(const TrainConfig& config, const ModelPair& models) {
  if (!models.student_renderer) fail(config.student, ": eval.suite needs a tokenizer with a chat template");
  (void)eval::load_suite(*config.eval.suite, config.eval.data);
}

bool evaluate_student(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
                      rollout::Generator& generator, const model::Weights& student, uint64_t step) {
  const auto suite = eval::load_suite(*config.eval.suite, config.eval.data);
  const Path folder = directory.evaluation(fmt::format("step-{:05}", step));
  if (std::filesystem::exists(folder / "summary.json")) return true;
  generator.replace_weights({.step = step});
  const auto& tokenizer = models.student_renderer->tokenizer();
  const auto generated =
      eval::generate_responses(generator, suite, tokenizer, models.student_renderer->chat_template(), folder,
                               {config.student + " after " + std::to_string(step) + " steps",
                                generator.fingerprint({.step = step}), config.seed});
  generator.release();
  if (!generated.is_finished) return false;
  // A teacher with another tokenizer would need its own prompts; then only the student's side is shown.
  eval::write_samples(
      folder, suite, tokenizer, config.metrics.samples,
      eval::score_by(student, models.vocabulary_map ? std::nullopt : std::optional(models.teacher_weights),
                     config.rollout.precision));
  eval::GradingConfig scoring;
  for (const uint64_t budget : config.eval.budgets) scoring.budgets.push_back(static_cast<uint32_t>(budget));
  if (scoring.budgets.empty()) scoring.budgets.push_back(static_cast<uint32_t>(config.eval.max_tokens));
  const eval::ResponseFile responses(folder / "responses.jsonl", suite);
  const auto scored = eval::grade_responses(suite, responses, tokenizer, scoring);
  eval::write_evaluation(folder, scored, eval::read_generation_record(folder));
  double accuracy = 0;
  for (const auto& benchmark : scored.benchmarks)
    accuracy += stats::benchmark_metrics(benchmark.outcomes.back()).accuracy /
                static_cast<double>(scored.benchmarks.size());
  log_info(fmt::format("evaluation after step {}: {:.2f}% on {} at {} tokens ({})", step, 100 * accuracy,
                       suite.name, scoring.budgets.back(), folder.string()));
  return true;
}

}  // namespace ropd::train
