#include "train/train_config.h"

#include <algorithm>

#include "base/error.h"
#include "base/yaml.h"
#include "curriculum/noise_trigger.h"
#include "io/model_path.h"
#include "model/training_pass.h"
#include "train/minibatch.h"

namespace ropd::train {
namespace {

bool has_source(const TrainConfig& config, SourceKind kind) {
  return std::any_of(
      config.curriculum.stages.begin(), config.curriculum.stages.end(), [&](const StageConfig& stage) {
        return stage.source == kind || std::find(stage.of.begin(), stage.of.end(), kind) != stage.of.end();
      });
}

bool has_trigger(const TrainConfig& config) {
  return std::any_of(config.curriculum.stages.begin(), config.curriculum.stages.end(),
                     [](const StageConfig& stage) { return stage.until.has_value(); });
}

Source make_source(SourceKind kind, const StageConfig& stage) {
  Source source{.kind = kind};
  if (kind == SourceKind::recent) source.step = stage.step.value_or(0);
  if (kind == SourceKind::bank) source.path = stage.path.value_or("");
  if (kind == SourceKind::mix)
    for (const SourceKind part : stage.of) source.of.push_back(make_source(part, stage));
  return source;
}

void check_mix(const TrainConfig& config, const ConfigPlace& place) {
  const bool has_mix = has_source(config, SourceKind::mix);
  if (config.train.reduction == Reduction::source_balanced && !has_mix)
    place.refuse({"train.reduction"},
                 " is source_balanced, but no stage of curriculum.stages is a mix; use minibatch_tokens");
  if (!has_mix) return;
  for (const uint64_t size : minibatch_sizes(config.train.responses_per_iteration, config.train.minibatch))
    if (size % 2 != 0)
      place.refuse({"train.minibatch", "train.responses_per_iteration", "curriculum.stages"}, " ",
                   config.train.minibatch, " and train.responses_per_iteration ",
                   config.train.responses_per_iteration, " give a minibatch of ", size,
                   ", a mix needs even minibatches");
}

// A bank the run samples itself is a whole number of batches; a file may be any size.
void check_bank(const TrainConfig& config, const ConfigPlace& place) {
  if (!has_source(config, SourceKind::initial) && !has_source(config, SourceKind::recent)) return;
  const uint64_t batch = config.train.responses_per_iteration;
  const uint64_t responses = config.curriculum.bank.responses;
  if (responses % batch != 0)
    place.refuse({"curriculum.bank.responses", "train.responses_per_iteration"}, " is ", responses,
                 ", expected a multiple of train.responses_per_iteration ", batch, " (",
                 responses > batch ? std::to_string(responses / batch * batch) + " or " : "",
                 (responses / batch + 1) * batch, ")");
}

void check_objective(const TrainConfig& config, const ConfigPlace& place) {
  const ObjectiveSection& objective = config.objective;
  const bool is_full = objective_config(config, {}).needs_full_teacher();
  const auto kind = enum_text(objective.kind);
  if (is_full && objective.eos != distill::EosControl::all)
    place.refuse({"objective.eos"}, " is ", enum_text(objective.eos),
                 ": the control acts on candidates, objective.kind ", kind, " has none");
  if (objective.weights != distill::CandidateWeights::student_p &&
      objective.kind != distill::ObjectiveKind::candidates)
    place.refuse({"objective.weights"}, " is ", enum_text(objective.weights),
                 ": only objective.kind candidates has weights, not ", kind);
}

curriculum::CurriculumSettings curriculum_settings(const TrainConfig& config, uint64_t first_step) {
  return {.total_iterations = config.train.iterations,
          .steps_per_iteration = steps_per_iteration(config),
          .first_step = first_step,
          .watch_always = config.trigger.watch == Watch::always};
}

}  // namespace

void SelectConfig::validate(const ConfigPlace& place) const {
  const int given = (count ? 1 : 0) + (first ? 1 : 0) + (ids.empty() ? 0 : 1) + (all ? 1 : 0);
  if (given > 1) place.refuse({""}, ": give one of count, first, ids and all, got ", given, " of them");
}

void OptimizationConfig::validate(const ConfigPlace& place) const {
  if (minibatch > responses_per_iteration)
    place.refuse({"minibatch", "responses_per_iteration"}, " is ", minibatch,
                 ", larger than train.responses_per_iteration ", responses_per_iteration,
                 "; every gradient would be scaled down by their ratio");
  for (const double beta : betas)
    if (!(beta < 1)) place.refuse({"betas"}, " must be below 1, got ", beta);
}

void ObjectiveSection::validate(const ConfigPlace& place) const {
  if (!(clip > 0 && clip < 1)) place.refuse({"clip"}, " must be in (0, 1), got ", clip);
  if (dual_clip <= 1 + clip)
    place.refuse({"dual_clip", "clip"}, " is ", dual_clip, ", expected more than 1 + clip = ", 1 + clip);
  if (top_k == 0 && kind != distill::ObjectiveKind::candidates &&
      kind != distill::ObjectiveKind::sampled_token)
    place.refuse({"top_k", "kind"}, " is 0 (the recorded token only), objective.kind ", enum_text(kind),
                 " needs candidates");
  if (kind == distill::ObjectiveKind::jsd && beta >= 1)
    place.refuse({"beta"}, " must be in (0, 1), got ", beta);
}

void StageConfig::validate(const ConfigPlace& place) const {
  const auto uses = [&](SourceKind kind) {
    return source == kind || std::find(of.begin(), of.end(), kind) != of.end();
  };
  const auto name = enum_text(source);
  if (source == SourceKind::mix && of.size() != 2)
    place.refuse({"of", ""}, ": a mix has of: [two sources], got ", of.size());
  if (source != SourceKind::mix && !of.empty())
    place.refuse({"of"}, ": source ", name, " takes no `of`; only a mix does");
  if (uses(SourceKind::recent) != step.has_value())
    place.refuse({"step", ""}, ": source ", name,
                 step ? " takes no step; only recent does" : " needs step: the frozen student's");
  if (uses(SourceKind::bank) != path.has_value())
    place.refuse({"path", ""}, ": source ", name,
                 path ? " takes no path; only bank does" : " needs path: a rollout file");
}

void TrainConfig::validate(const ConfigPlace& place) const {
  for (const auto& [name, value] :
       {std::pair{"student", &student}, {"teacher", &teacher}, {"output", &output}})
    if (value->empty()) place.refuse({name}, " is required, but not given");
  if (needs_sampling(*this) && data.queries.empty())
    place.refuse({"data.queries"}, " is required: a stage of curriculum.stages samples responses");
  if (curriculum.stages.empty())
    place.refuse({"curriculum.stages"}, " is empty; expected at least one stage, e.g. {source: current}");
  check_objective(*this, place);
  check_mix(*this, place);
  check_bank(*this, place);
  if (continue_from) return;  // the steps before the run are not known yet
  auto stages = make_stages(*this);
  for (size_t i = 0; i < stages.size(); ++i)
    stages[i].where = place.where("curriculum.stages[" + std::to_string(i) + "]");
  (void)curriculum::Curriculum(std::move(stages), curriculum_settings(*this, 0),
                               make_trigger(trigger));  // names the stage
}

TrainConfig parse_train_config(std::string_view yaml, std::string_view where,
                               std::span<const std::string> overrides) {
  TrainConfig config = parse_config<TrainConfig>(yaml, where, overrides);
  SelectConfig& select = config.data.select;
  if (!select.count && !select.first && select.ids.empty() && !select.all) select.count = 48;
  if (config.objective.top_k == 0) config.objective.kind = distill::ObjectiveKind::sampled_token;
  return config;
}

TrainConfig load_train_config(const Path& path, std::span<const std::string> overrides) {
  TrainConfig config = parse_train_config(read_file(path, 1 << 20), path.string(), overrides);
  for (std::string* model : {&config.student, &config.teacher})
    if (!model->empty()) *model = io::find_model(*model).string();
  return config;
}

TrainConfig load_run_config(const Path& path) {
  return parse_run_config(read_file(path, 1 << 20), path.string());
}

TrainConfig parse_run_config(std::string_view yaml, std::string_view where,
                             std::span<const std::string> overrides) {
  const ConfigNode written = parse_yaml_document(yaml, where);
  const auto item = [](const ConfigNode& map, std::string_view name) {
    return std::find_if(map.items.begin(), map.items.end(),
                        [&](const ConfigNode& node) { return node.name == name; });
  };
  const auto train = item(written, "train");
  const bool has_shards = train != written.items.end() && item(*train, "shards") != train->items.end();
  std::vector<std::string> added;
  if (!has_shards) added.push_back("train.shards=1");
  added.insert(added.end(), overrides.begin(), overrides.end());
  return parse_train_config(yaml, where, added);
}

uint64_t steps_per_iteration(const TrainConfig& config) {
  return (config.train.responses_per_iteration + config.train.minibatch - 1) / config.train.minibatch;
}

std::vector<curriculum::Stage> make_stages(const TrainConfig& config) {
  std::vector<curriculum::Stage> stages;
  for (const StageConfig& stage : config.curriculum.stages)
    stages.push_back({make_source(stage.source, stage), stage.iterations, stage.until.has_value()});
  return stages;
}

curriculum::Curriculum make_curriculum(const TrainConfig& config, uint64_t first_step) {
  return {make_stages(config), curriculum_settings(config, first_step), make_trigger(config.trigger)};
}

std::unique_ptr<curriculum::Trigger> make_trigger(const TriggerConfig& config) {
  return std::make_unique<curriculum::NoiseTrigger>(config.persistence);
}

size_t activation_budget(const TrainConfig& config) {
  const auto& gigabytes = config.train.activation_memory_gb.value;
  return gigabytes ? static_cast<size_t>(*gigabytes * 1e9) : model::kTraceBudgetBytes;
}

optim::AdamWSettings adamw_settings(const TrainConfig& config) {
  return {.learning_rate = config.train.learning_rate,
          .beta1 = config.train.betas[0],
          .beta2 = config.train.betas[1],
          .epsilon = config.train.epsilon,
          .weight_decay = config.train.weight_decay};
}

distill::ObjectiveConfig objective_config(const TrainConfig& config, std::vector<Token> eos_ids) {
  const ObjectiveSection& objective = config.objective;
  // Masks act on the token that ends a turn (Qwen3: 151645, the first of generation_config.json), not on others
  // that end a response as well (151643).
  if (eos_ids.size() > 1) eos_ids.resize(1);
  return {.kind = objective.kind,
          .weights = objective.weights,
          .eos = objective.eos,
          .eos_ids = std::move(eos_ids),
          .clip = static_cast<float>(objective.clip),
          .dual_clip = static_cast<float>(objective.dual_clip),
          .max_log_ratio = static_cast<float>(objective.max_log_ratio),
          .beta = static_cast<float>(objective.beta),
          .student_temperature = static_cast<float>(config.rollout.temperature),
          .teacher_temperature = static_cast<float>(objective.teacher_temperature)};
}

std::optional<Selection> query_selection(const TrainConfig& config) {
  const SelectConfig& select = config.data.select;
  if (select.all) return std::nullopt;
  return Selection{.count = select.count, .seed = select.seed, .first = select.first, .ids = select.ids};
}

bool needs_sampling(const TrainConfig& config) {
  return has_source(config, SourceKind::current) || has_source(config, SourceKind::initial) ||
         has_source(config, SourceKind::recent);
}

std::vector<std::string> config_warnings(const TrainConfig& config) {
  std::vector<std::string> warnings;
  if (has_trigger(config) && steps_per_iteration(config) < 2)
    warnings.push_back(
        "one minibatch an iteration: the trigger needs two to compare gradients and will never be set");
  const uint64_t smallest =
      minibatch_sizes(config.train.responses_per_iteration, config.train.minibatch).back();
  if (config.train.shards > 1 && smallest < 2 * config.train.shards)
    warnings.push_back("train.shards is " + std::to_string(config.train.shards) + ", but a minibatch has " +
                       std::to_string(smallest) +
                       " responses: with fewer than two a shard each response is a token mean of its own");
  if (config.rollout.top_p < 1 && has_source(config, SourceKind::current))
    warnings.push_back("rollout.top_p below 1: responses are not drawn from the policy that is trained");
  if (config.train.weight_decay > 0 && config.train.learning_rate == 0)
    warnings.push_back("train.learning_rate is 0: nothing will be learned");
  if (config.checkpoint.every > config.train.iterations)
    warnings.push_back("checkpoint.every exceeds train.iterations: only the end is saved");
  return warnings;
}

}  // namespace ropd::train
