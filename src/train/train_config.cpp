#include "train/train_config.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/yaml.h"
#include "curriculum/fixed_trigger.h"
#include "curriculum/noise_trigger.h"
#include "curriculum/plateau_trigger.h"
#include "io/model_path.h"
#include "model/training_pass.h"
#include "train/minibatch.h"

namespace ropd::train {
namespace {

constexpr std::string_view kBankPart = "bank:", kRecentPart = "recent:";

// A part of a mix by its name. What stands behind the colon may be given by the stage instead. Nothing when
// it is no such name.
std::optional<Source> part_of(const std::string& name, const StageConfig& stage) {
  if (name == "current") return Source{.kind = SourceKind::current};
  if (name == "initial") return Source{.kind = SourceKind::initial};
  if (name == "recent") return Source{.kind = SourceKind::recent, .step = stage.step.value_or(0)};
  if (name == "bank") return Source{.kind = SourceKind::bank, .path = stage.path.value_or("")};
  if (name.starts_with(kBankPart) && name.size() > kBankPart.size())
    return Source{.kind = SourceKind::bank, .path = name.substr(kBankPart.size())};
  if (!name.starts_with(kRecentPart)) return std::nullopt;
  Source source{.kind = SourceKind::recent};
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + kRecentPart.size(), end, source.step);
  if (error != std::errc() || stopped != end || source.step == 0) return std::nullopt;
  return source;
}

// Of a stage whose parts were checked.
Source make_source(const StageConfig& stage) {
  Source source{.kind = stage.source};
  if (source.kind == SourceKind::recent) source.step = stage.step.value_or(0);
  if (source.kind == SourceKind::bank) source.path = stage.path.value_or("");
  for (const std::string& name : stage.of) source.of.push_back(part_of(name, stage).value());
  source.ratio = curriculum::reduced(stage.ratio);
  return source;
}

bool uses(const Source& source, SourceKind kind) {
  return source.kind == kind || std::any_of(source.of.begin(), source.of.end(),
                                            [&](const Source& part) { return uses(part, kind); });
}

bool has_source(const TrainConfig& config, SourceKind kind) {
  return std::any_of(config.curriculum.stages.begin(), config.curriculum.stages.end(),
                     [&](const StageConfig& stage) { return uses(make_source(stage), kind); });
}

bool has_trigger(const TrainConfig& config) {
  return std::any_of(config.curriculum.stages.begin(), config.curriculum.stages.end(),
                     [](const StageConfig& stage) { return stage.until.has_value(); });
}

void check_mix(const TrainConfig& config, const ConfigPlace& place) {
  const bool has_mix = has_source(config, SourceKind::mix);
  if (config.train.reduction == Reduction::source_balanced && !has_mix)
    place.refuse({"train.reduction"},
                 " is source_balanced, but no stage of curriculum.stages is a mix; use minibatch_tokens");
  for (const StageConfig& stage : config.curriculum.stages) {
    const Source source = make_source(stage);
    if (source.of.empty() || !source.ratio.empty() || !stage.ratio_to.empty()) continue;
    for (const uint64_t size : minibatch_sizes(config.train.responses_per_iteration, config.train.minibatch))
      if (size % source.of.size() != 0)
        place.refuse({"train.minibatch", "train.responses_per_iteration", "curriculum.stages"}, " ",
                     config.train.minibatch, " and train.responses_per_iteration ",
                     config.train.responses_per_iteration, " give a minibatch of ", size, ", a mix of ",
                     source.of.size(), " equal parts needs minibatches that are a multiple of ",
                     source.of.size(), "; with a ratio of its own it comes as close as it can");
  }
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
  if (order != Order::recorded && (responses_per_iteration % shards != 0 || minibatch % shards != 0))
    place.refuse({"order", "shards", "responses_per_iteration", "minibatch"}, " is ", enum_text(order), ": ",
                 shards, " ranks (train.shards) share train.responses_per_iteration ",
                 responses_per_iteration, " and train.minibatch ", minibatch,
                 " equally, so both must be multiples of ", shards);
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
  const auto name = enum_text(source);
  if (source == SourceKind::mix && of.size() < 2)
    place.refuse({"of", ""}, ": a mix has of: [at least two sources], got ", of.size());
  if (source != SourceKind::mix && !of.empty())
    place.refuse({"of"}, ": source ", name, " takes no `of`; only a mix does");
  for (const auto& [key, numbers] : {std::pair{"ratio", &ratio}, {"ratio_to", &ratio_to}})
    if (!numbers->empty() && numbers->size() != of.size())
      place.refuse({key, ""}, ": has ", numbers->size(), " numbers, `of` names ", of.size(), " sources");
  for (const std::string& part : of)
    if (!part_of(part, *this))
      place.refuse({"of"}, ": \"", part,
                   "\" is no source of a mix; expected current, initial, recent:STEP or "
                   "bank:FILE");
  const auto is_named = [&](SourceKind kind) {
    return source == kind || std::find(of.begin(), of.end(), enum_text(kind)) != of.end();
  };
  if (is_named(SourceKind::recent) != step.has_value())
    place.refuse({"step", ""}, ": source ", name,
                 step ? " takes no step; only recent does" : " needs step: the frozen student's");
  if (is_named(SourceKind::bank) != path.has_value())
    place.refuse({"path", ""}, ": source ", name,
                 path ? " takes no path; only bank does" : " needs path: a rollout file");
}

void TriggerRule::validate(const ConfigPlace& place) const {
  if ((kind == TriggerKind::fixed) != iteration.has_value())
    place.refuse({"iteration", "kind", ""},
                 iteration ? ": only kind fixed takes one, this is " : " is needed: kind is ",
                 enum_text(kind));
}

void WatchedTriggerConfig::validate(const ConfigPlace& place) const {
  if (name.empty()) place.refuse({"name", ""}, " is required: the metrics tell the watched triggers by it");
  rule.validate(place);
}

void TriggerConfig::validate(const ConfigPlace& place) const {
  rule.validate(place);
  for (size_t i = 0; i < watched.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (watched[i].name == watched[j].name)
        place.refuse({"watched"}, ": name \"", watched[i].name, "\" is there twice");
}

void TrainConfig::validate(const ConfigPlace& place) const {
  for (const auto& [name, value] :
       {std::pair{"student", &student}, {"teacher", &teacher}, {"output", &output}})
    if (value->empty()) place.refuse({name}, " is required, but not given");
  if (needs_sampling(*this) && data.queries.empty())
    place.refuse({"data.queries"}, " is required: a stage of curriculum.stages samples responses");
  if (curriculum.stages.empty())
    place.refuse({"curriculum.stages"}, " is empty; expected at least one stage, e.g. {source: current}");
  constexpr double kMostGigabytes = 1e6;  // beyond the number of bytes need not be one
  for (const auto& [name, value] : {std::pair{"rollout.memory_gb", &rollout.memory_gb.value},
                                    {"train.activation_memory_gb", &train.activation_memory_gb.value},
                                    {"train.teacher_memory_gb", &train.teacher_memory_gb.value}})
    if (value->value_or(0) > kMostGigabytes)
      place.refuse({name}, " is ", **value, ", expected auto or at most ", kMostGigabytes);
  check_objective(*this, place);
  check_mix(*this, place);
  check_bank(*this, place);
  if (continue_from) return;  // the steps before the run are not known yet
  auto stages = make_stages(*this);
  for (size_t i = 0; i < stages.size(); ++i)
    stages[i].where = place.where("curriculum.stages[" + std::to_string(i) + "]");
  (void)curriculum::Curriculum(std::move(stages), curriculum_settings(*this, 0),
                               make_trigger(trigger.rule));  // names the stage
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
  ConfigNode written = parse_yaml_document(yaml, where);
  const auto item = [](ConfigNode& map, std::string_view name) {
    return std::find_if(map.items.begin(), map.items.end(),
                        [&](const ConfigNode& node) { return node.name == name; });
  };
  const auto train = item(written, "train"), checkpoint = item(written, "checkpoint");
  const bool has_train = train != written.items.end();
  std::vector<std::string> added;
  if (!has_train || item(*train, "shards") == train->items.end()) added.push_back("train.shards=1");
  if (checkpoint == written.items.end() || item(*checkpoint, "dtype") == checkpoint->items.end())
    added.push_back("checkpoint.dtype=f32");
  added.insert(added.end(), overrides.begin(), overrides.end());
  if (!has_train) return parse_train_config(yaml, where, added);
  const auto balanced = item(*train, "length_balanced");
  if (balanced == train->items.end()) return parse_train_config(yaml, where, added);
  if (write_value(*balanced) != "false")
    fail(where, ": train.length_balanced is ", write_value(*balanced),
         ", an order of the batch that this version does not have any more; go on with the version that "
         "began the run, or start a new one with train.order");
  train->items.erase(balanced);
  return parse_train_config(write_yaml(written), where, added);
}

uint64_t steps_per_iteration(const TrainConfig& config) {
  return (config.train.responses_per_iteration + config.train.minibatch - 1) / config.train.minibatch;
}

std::vector<curriculum::Stage> make_stages(const TrainConfig& config) {
  std::vector<curriculum::Stage> stages;
  for (const StageConfig& stage : config.curriculum.stages)
    stages.push_back({make_source(stage), stage.iterations, stage.until.has_value(), stage.ratio_to});
  return stages;
}

StageConfig stage_config(const Source& source) {
  StageConfig stage{.source = source.kind, .iterations = 1, .ratio = source.ratio};
  if (source.kind == SourceKind::recent) stage.step = source.step;
  if (source.kind == SourceKind::bank) stage.path = source.path;
  for (const Source& part : source.of) stage.of.push_back(source_name(part));
  return stage;
}

void visit_bank_paths(CurriculumConfig& curriculum, const std::function<void(std::string& path)>& visit) {
  for (StageConfig& stage : curriculum.stages) {
    if (stage.path) visit(*stage.path);
    for (std::string& part : stage.of) {
      if (!part.starts_with(kBankPart)) continue;
      std::string path = part.substr(kBankPart.size());
      visit(path);
      part = std::string(kBankPart) + path;
    }
  }
}

curriculum::Curriculum make_curriculum(const TrainConfig& config, uint64_t first_step) {
  std::vector<curriculum::WatchedTrigger> watched;
  for (const WatchedTriggerConfig& one : config.trigger.watched)
    watched.push_back({one.name, make_trigger(one.rule)});
  return {make_stages(config), curriculum_settings(config, first_step), make_trigger(config.trigger.rule),
          std::move(watched)};
}

std::unique_ptr<curriculum::Trigger> make_trigger(const TriggerRule& rule) {
  const curriculum::RowSettings row{.persistence = rule.persistence, .earliest = rule.earliest};
  curriculum::PlateauSettings plateau{.tolerance = rule.tolerance, .window = rule.window};
  switch (rule.kind) {
    case TriggerKind::noise:
      return std::make_unique<curriculum::NoiseTrigger>(row, rule.threshold);
    case TriggerKind::kl_plateau:
      plateau.quantity = curriculum::PlateauOf::kl;
      break;
    case TriggerKind::length_plateau:
      plateau.quantity = curriculum::PlateauOf::length;
      break;
    case TriggerKind::fixed:
      return std::make_unique<curriculum::FixedTrigger>(rule.iteration.value());
  }
  return std::make_unique<curriculum::PlateauTrigger>(row, plateau);
}

size_t activation_budget(const TrainConfig& config) {
  const auto& gigabytes = config.train.activation_memory_gb.value;
  return gigabytes ? static_cast<size_t>(*gigabytes * 1e9) : model::kTraceBudgetBytes;
}

std::optional<uint64_t> teacher_budget(const TrainConfig& config) {
  const auto& gigabytes = config.train.teacher_memory_gb.value;
  return gigabytes ? std::optional(static_cast<uint64_t>(*gigabytes * 1e9)) : std::nullopt;
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
  if (has_trigger(config) && config.trigger.rule.kind == TriggerKind::noise &&
      steps_per_iteration(config) < 2)
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
  if (config.adapter)
    if (auto hint = adapter_rate_hint(config.train.learning_rate, OptimizationConfig{}.learning_rate))
      warnings.push_back("train." + *hint);
  if (config.checkpoint.every > config.train.iterations)
    warnings.push_back("checkpoint.every exceeds train.iterations: only the end is saved");
  return warnings;
}

}  // namespace ropd::train
