// ropd score: what a student, and a teacher if given, say about every position of recorded responses.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <unordered_map>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/models.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/sha256.h"
#include "base/stop.h"
#include "comm/agreement.h"
#include "distill/crew_scorer.h"
#include "distill/scoring.h"
#include "io/dataset.h"
#include "io/files_in_use.h"
#include "io/model_directory.h"
#include "io/rollout_file.h"
#include "io/score_file.h"
#include "io/score_stream.h"
#include "rollout/fingerprint.h"
#include "text/prompt_renderer.h"
#include "train/run_parts.h"
#include "train/teacher_translation.h"

namespace ropd::app {
namespace {

struct Options {
  std::string model, base, teacher, teacher_base, rollouts, queries, prompt_prefix, prompt_suffix;
  Output out;
  uint32_t top_k = 16;
  std::string precision = "f32";
  double temperature = 1, teacher_temperature = 1;
  int64_t batch_tokens = 8192;
  std::optional<double> teacher_memory_gb;
};

// How a teacher with another tokenizer reads the rollouts; nothing when ids mean the same to both.
std::optional<distill::TeacherTranslation> translation_for(const Options& options, const ModelConfig& student,
                                                           const ModelConfig& teacher) {
  const Path teacher_text = io::text_directory(options.teacher, options.teacher_base);
  const auto map = train::teacher_vocabulary(io::text_directory(options.model, options.base), student,
                                             teacher_text, teacher);
  if (!map) return std::nullopt;
  log_info("teacher vocabulary: ", map->describe());
  if (map->is_identity()) return train::translate(map, student, teacher, {});
  if (options.queries.empty())
    fail(
        "the teacher has another tokenizer and reads its own prompt: give the questions with --queries FILE");
  auto renderer = std::make_shared<text::PromptRenderer>(
      text::PromptRenderer::load(teacher_text, {options.prompt_prefix, options.prompt_suffix, false}));
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

// Student and, where there is one, teacher, and what scores by them.
class GivenModels {
 public:
  explicit GivenModels(const Options& options)
      : student_(bounded_model(options.model, options.base, std::nullopt)) {
    config_ = {.top_k = std::min(options.top_k, static_cast<uint32_t>(student_.config().vocab_size)),
               .precision = kernels::precision_named(options.precision),
               .temperature = static_cast<float>(options.temperature),
               .batch_tokens = options.batch_tokens};
    teacher_config_ = config_;
    teacher_config_.temperature = static_cast<float>(options.teacher_temperature);
    std::optional<distill::TeacherTranslation> translation;
    std::function<model::Weights()> find_teacher;
    if (!options.teacher.empty()) {
      teacher_.emplace(bounded_model(options.teacher, options.teacher_base, options.teacher_memory_gb));
      translation = translation_for(options, student_.config(), teacher_->config());
      find_teacher = [this] { return teacher(); };
    }
    scorer_.emplace([this] { return student(); }, std::move(find_teacher), std::move(translation),
                    distill::LocalScorerConfig{
                        .student = config_,
                        .teacher = teacher_config_,
                        .progress = [this](const char* stage, double done, uint64_t total, uint64_t tokens) {
                          if (on_progress) on_progress(stage, done, total, tokens);
                        }});
  }
  GivenModels(const GivenModels&) = delete;  // its scorer refers to it
  GivenModels& operator=(const GivenModels&) = delete;
  // What ranks must agree on.
  comm::Facts facts() {
    comm::Facts facts = train::program_facts();
    facts["student"] = rollout::weights_fingerprint(student());
    if (teacher_) facts["teacher"] = rollout::weights_fingerprint(teacher());
    facts["scoring"] = fmt::format("{} top_k {} temperatures {} {}", name_of(config_.precision),
                                   config_.top_k, config_.temperature, teacher_config_.temperature);
    return facts;
  }
  const ModelConfig& student_config() const { return student_.config(); }
  std::string student_identity() { return identity(student_); }
  std::string teacher_identity() { return teacher_ ? identity(*teacher_) : ""; }
  // Tokens that are scored before their scores are written: enough for a pass of a streamed model on every rank,
  // which gets whole responses, up to the longest less than fits.
  int64_t piece_tokens(int64_t longest, int ranks) const {
    constexpr int64_t kBatches = 4;
    const int64_t pass = static_cast<int64_t>(
        scorer_->pass_tokens().value_or(static_cast<uint64_t>(kBatches * config_.batch_tokens)));
    return ranks == 1 ? pass : ranks * std::max(pass - longest, pass / 2);
  }
  // What streamed models read.
  void tell() const {
    log_streamed("model", student_.counts());
    if (teacher_) log_streamed("teacher", teacher_->counts());
  }

  distill::LocalScorer& scorer() { return *scorer_; }
  distill::StageProgress on_progress = {};  // of the scorer; may be empty

 private:
  model::BoundedModel student_;
  std::optional<model::BoundedModel> teacher_;
  distill::ScoringConfig config_, teacher_config_;
  std::optional<distill::LocalScorer> scorer_;

  std::string identity(model::BoundedModel& model) const {
    return rollout::weights_fingerprint(model.weights(config_.batch_tokens)) + " " +
           sha256_file(model.directory().base_path() / "config.json");
  }
  model::Weights student() { return student_.weights(config_.batch_tokens); }
  model::Weights teacher() { return teacher_->weights(config_.batch_tokens); }
};

io::FilesInUse files_of(const Options& options) {
  io::FilesInUse files;
  files.add(io::model_files(options.model, options.base));
  if (!options.teacher.empty()) files.add(io::model_files(options.teacher, options.teacher_base));
  return files;
}

// All that the scores depend on, as one line: an interrupted command goes on only with the same.
std::string origin_of(const Options& options, const std::vector<Rollout>& rollouts, GivenModels& models) {
  Sha256 rows;
  for (const Rollout& rollout : rollouts) rows.add(io::rollout_line(rollout));
  return Json{{"rollouts", rows.hexadecimal()},
              {"student", models.student_identity()},
              {"teacher", models.teacher_identity()},
              {"queries", options.queries.empty() ? "" : sha256_file(options.queries)},
              {"prompt", {options.prompt_prefix, options.prompt_suffix}},
              {"top_k", options.top_k},
              {"precision", options.precision},
              {"temperatures", {options.temperature, options.teacher_temperature}}}
      .dump(-1, ' ', true, Json::error_handler_t::replace);
}

void run(const Options& options) {
  install_stop_handlers();
  comm::Crew& crew = join_crew();
  std::optional<GivenModels> given;
  leader_first(crew, [&] {
    if (crew.leads()) {
      check_output(options.out, {options.rollouts, options.queries});
      refuse_inputs(io::partial_scores(options.out.path), {options.rollouts, options.queries});
      if (options.out.overwrites) std::filesystem::remove(io::partial_scores(options.out.path));
    }
    given.emplace(options);
  });
  GivenModels& models = *given;
  const io::FilesInUse files = crew.leads() ? files_of(options) : io::FilesInUse();
  distill::CrewScorer scorer(models.scorer(), crew);
  if (!crew.is_alone()) comm::require_agreement(crew.world(), models.facts());
  if (!crew.leads()) assist(crew);
  mention_tiles({{"--precision ", kernels::precision_named(options.precision)}});
  crew.expect_service();
  const auto rollouts =
      io::read_rollouts(options.rollouts, {.vocab_size = models.student_config().vocab_size});
  distill::check_rollouts(rollouts, models.student_config());
  io::ScoreStream out(options.out.path, origin_of(options, rollouts, models));
  const auto rest = std::span(rollouts).subspan(std::min<size_t>(out.num_done(), rollouts.size()));
  if (out.num_done() > 0)
    log_info(options.out.path, ": ", out.num_done(), " of ", rollouts.size(), " scores are there, going on");
  Progress progress("score", rollouts.size(), "tok");
  uint64_t tokens = 0;
  if (crew.is_alone())  // else all ranks' lots come here one by one
    models.on_progress = [&](const char* stage, double done, uint64_t total, uint64_t) {
      const auto whole = static_cast<uint64_t>(done);
      progress.update(
          static_cast<double>(out.num_done()), tokens,
          std::string(stage) + " " + format_done(whole, total, done - static_cast<double>(whole)));
    };
  const auto length = [&](size_t i) {
    return static_cast<int64_t>(rest[i].prompt_ids.size() + rest[i].response_ids.size());
  };
  int64_t longest = 0;
  for (size_t i = 0; i < rest.size(); ++i) longest = std::max(longest, length(i));
  // In pieces, so that scores of a long file are not all held in memory.
  for (const auto& [begin, end] :
       model::pack_in_order(rest.size(), models.piece_tokens(longest, crew.world().size()), length)) {
    const auto scored = scorer.score(rest.subspan(begin, end - begin), {});
    files.check();
    for (const Scores& s : scored.scores) {
      out.add(io::scores_line(s));
      tokens += s.sampled_logprobs.size();
    }
    out.sync();
    progress.update(out.num_done(), tokens);
    if (stop_requested() && end < rest.size())
      end_stopped(options.out.path + ": stopped with " + std::to_string(out.num_done()) + " of " +
                  std::to_string(rollouts.size()) + " scores; the same command " +
                  (options.out.is_standard() ? "begins again" : "goes on from here"));
  }
  progress.finish();
  out.finish();
  models.tell();
}

}  // namespace

void add_score(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("score", "log-probabilities of recorded responses under a student and a teacher");
  command->add_option("--model", options->model, "student: model or adapter directory, checkpoint or run")
      ->required()
      ->check(CLI::ExistingDirectory)
      ->transform(to_model());
  add_base(*command, "--base", options->base);
  command->add_option("--teacher", options->teacher, "model or adapter directory, checkpoint or run")
      ->check(CLI::ExistingDirectory)
      ->transform(to_model());
  add_base(*command, "--teacher-base", options->teacher_base);
  command
      ->add_option("--rollouts", options->rollouts,
                   "JSONL with query_id, prompt_ids, response_ids; - is standard input")
      ->required()
      ->transform(or_standard_input())
      ->check(CLI::ExistingFile);
  command->add_option("--top-k", options->top_k, "candidates a position, most likely under the student")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--precision", options->precision, "of matrix products")
      ->check(is_precision())
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
  add_teacher_memory(*command, options->teacher_memory_gb);
  command->add_option("--queries", options->queries, "questions by id, for a teacher with another tokenizer")
      ->check(CLI::ExistingFile);
  command->add_option("--prompt-prefix", options->prompt_prefix, "put before each of them");
  command->add_option("--prompt-suffix", options->prompt_suffix, "put behind each of them");
  add_output(*command, options->out, "JSONL of scores; appears whole, an interrupted command goes on")
      ->required();
  command->footer(
      "Example:\n  ropd score --model models/Qwen3-0.6B --teacher models/Qwen3-4B --rollouts bank.jsonl "
      "--out scores.jsonl");
  command->callback([options] { run(*options); });
}

}  // namespace ropd::app
