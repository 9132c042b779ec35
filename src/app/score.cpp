// ropd score: what a student, and a teacher if given, say about every position of recorded responses.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <unordered_map>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "base/progress.h"
#include "base/stop.h"
#include "comm/agreement.h"
#include "distill/crew_scorer.h"
#include "distill/scoring.h"
#include "io/dataset.h"
#include "io/model_directory.h"
#include "io/rollout_file.h"
#include "io/score_file.h"
#include "rollout/fingerprint.h"
#include "text/prompt_renderer.h"
#include "train/run_parts.h"
#include "train/teacher_translation.h"

namespace ropd::app {
namespace {

struct Options {
  std::string model, teacher, rollouts, queries, prompt_prefix, prompt_suffix;
  Output out;
  uint32_t top_k = 16;
  std::string precision = "f32";
  double temperature = 1, teacher_temperature = 1;
  int64_t batch_tokens = 8192;
};

// A model larger than memory would read every weight from disk for every batch: refused with the numbers.
void check_memory(const io::ModelDirectory& directory) {
  uint64_t bytes = 0;
  for (const auto& tensor : directory.tensors()) bytes += tensor.bytes.size();
  const auto memory = read_memory_info();
  if (bytes > usable_bytes(memory))
    fail(directory.path().string(), ": ", format_bytes(static_cast<double>(bytes)), " of weights, but only ",
         format_bytes(static_cast<double>(usable_bytes(memory))), " of memory are free");
}

model::Weights load(const std::string& path) {
  auto directory = std::make_shared<const io::ModelDirectory>(path);
  check_memory(*directory);
  auto weights = model::map_weights(directory);
  model::check_finite(weights, path);
  return weights;
}

// How a teacher with another tokenizer reads the rollouts; nothing when ids mean the same to both.
std::optional<distill::TeacherTranslation> translation_for(const Options& options, const ModelConfig& student,
                                                           const ModelConfig& teacher) {
  const auto map = train::teacher_vocabulary(options.model, student, options.teacher, teacher);
  if (!map) return std::nullopt;
  log_info("teacher vocabulary: ", map->describe());
  if (map->is_identity()) return train::translate(map, student, teacher, {});
  if (options.queries.empty())
    fail(
        "the teacher has another tokenizer and reads its own prompt: give the questions with --queries FILE");
  auto renderer = std::make_shared<text::PromptRenderer>(
      text::PromptRenderer::load(options.teacher, {options.prompt_prefix, options.prompt_suffix, false}));
  auto queries = std::make_shared<std::unordered_map<std::string, Query>>();
  for (Query& query : io::read_dataset(options.queries).queries) queries->emplace(query.id, std::move(query));
  return train::translate(map, student, teacher,
                          [renderer, queries, file = options.queries](const Rollout& rollout) {
                            const auto found = queries->find(rollout.query_id);
                            if (found == queries->end())
                              fail(file, ": no question with the id ", rollout.query_id);
                            return renderer->render(found->second);
                          });
}

// Student and, where there is one, teacher, as a Scorer.
class GivenModels final : public distill::Scorer {
 public:
  GivenModels(const Options& options, comm::Crew& crew) : student_(load(options.model)) {
    config_ = {.top_k = std::min(options.top_k, static_cast<uint32_t>(student_.config.vocab_size)),
               .precision = options.precision == "bf16" ? kernels::Precision::bf16 : kernels::Precision::f32,
               .temperature = static_cast<float>(options.temperature),
               .batch_tokens = options.batch_tokens};
    teacher_config_ = config_;
    teacher_config_.temperature = static_cast<float>(options.teacher_temperature);
    if (!options.teacher.empty()) {
      teacher_ = load(options.teacher);
      translation_ = translation_for(options, student_.config, teacher_->config);
    }
    if (crew.is_alone()) return;
    comm::Facts facts = train::program_facts();
    facts["student"] = rollout::weights_fingerprint(student_);
    if (teacher_) facts["teacher"] = rollout::weights_fingerprint(*teacher_);
    facts["scoring"] = fmt::format("{} top_k {} temperatures {} {}", options.precision, config_.top_k,
                                   options.temperature, options.teacher_temperature);
    comm::require_agreement(crew.world(), facts);
  }
  const ModelConfig& student_config() const { return student_.config; }

  distill::Scoring score(std::span<const Rollout> rollouts, std::vector<Scores>) override {
    distill::Scoring result{.scores = distill::score_student(student_, rollouts, config_, workspace_)};
    if (teacher_)
      distill::score_teacher(result.scores, *teacher_, rollouts, teacher_config_, teacher_workspace_,
                             translation_ ? &*translation_ : nullptr);
    return result;
  }
  distill::TeacherRows teacher_rows(std::span<const distill::TrainingItem>) override {
    fail("scores of recorded responses need no rows of a teacher");
  }

 private:
  const model::Weights student_;
  std::optional<model::Weights> teacher_;
  std::optional<distill::TeacherTranslation> translation_;
  distill::ScoringConfig config_, teacher_config_;
  model::Workspace workspace_, teacher_workspace_;
};

void run(const Options& options) {
  install_stop_handlers();
  comm::Crew& crew = join_crew();
  if (crew.leads()) check_output(options.out, {options.rollouts, options.queries});
  GivenModels models(options, crew);
  distill::CrewScorer scorer(models, crew);
  if (!crew.leads()) assist(crew);
  crew.expect_service();
  const auto rollouts =
      io::read_rollouts(options.rollouts, {.vocab_size = models.student_config().vocab_size});
  distill::check_rollouts(rollouts, models.student_config());
  AtomicFile out(options.out.path);
  Progress progress("score", rollouts.size(), "tok");
  uint64_t tokens = 0;
  // In pieces, so that scores of a long file are not all held in memory.
  for (const auto& [begin, end] :
       model::pack_in_order(rollouts.size(), 4 * options.batch_tokens * crew.world().size(), [&](size_t i) {
         return static_cast<int64_t>(rollouts[i].prompt_ids.size() + rollouts[i].response_ids.size());
       })) {
    for (const Scores& s : scorer.score(std::span(rollouts).subspan(begin, end - begin), {}).scores) {
      out.write(io::scores_line(s) + "\n");
      tokens += s.sampled_logprobs.size();
    }
    progress.update(end, tokens);
    if (stop_requested() && end < rollouts.size())
      end_stopped("stopped; " + options.out.path + " was not written, the same command begins again");
  }
  progress.finish();
  out.commit();
}

}  // namespace

void add_score(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("score", "log-probabilities of recorded responses under a student and a teacher");
  command->add_option("--model", options->model, "student: model directory, checkpoint or run")
      ->required()
      ->check(CLI::ExistingDirectory)
      ->transform(to_model());
  command->add_option("--teacher", options->teacher, "model directory, checkpoint or run")
      ->check(CLI::ExistingDirectory)
      ->transform(to_model());
  command->add_option("--rollouts", options->rollouts, "JSONL with query_id, prompt_ids, response_ids")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--top-k", options->top_k, "candidates a position, most likely under the student")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--precision", options->precision, "of matrix products")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  command->add_option("--temperature", options->temperature, "student logits are divided by it")
      ->check(is_temperature())
      ->capture_default_str();
  command
      ->add_option("--teacher-temperature", options->teacher_temperature, "teacher logits are divided by it")
      ->check(is_temperature())
      ->capture_default_str();
  command->add_option("--batch-tokens", options->batch_tokens, "packed into one pass; never changes a result")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--queries", options->queries, "questions by id, for a teacher with another tokenizer")
      ->check(CLI::ExistingFile);
  command->add_option("--prompt-prefix", options->prompt_prefix, "put before each of them");
  command->add_option("--prompt-suffix", options->prompt_suffix, "put behind each of them");
  add_output(*command, options->out, "JSONL of scores; appears whole")->required();
  command->footer(
      "Example:\n  ropd score --model models/Qwen3-0.6B --teacher models/Qwen3-4B --rollouts bank.jsonl "
      "--out scores.jsonl");
  command->callback([options] { run(*options); });
}

}  // namespace ropd::app
