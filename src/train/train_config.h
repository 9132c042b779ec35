// The configuration of a run: `ropd train CONFIG.yaml key=value ...`. Defaults are the paper's. One field
// list per section drives reading, the resolved config.yaml, --help and docs/config.md
// (base/config_fields.h).
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config_fields.h"
#include "curriculum/stages.h"
#include "distill/supervision.h"
#include "kernels/matmul.h"
#include "optim/adamw.h"
#include "records/source.h"
#include "tensor/dtype.h"
#include "train/adapter_section.h"
#include "train/query_operations.h"

namespace ropd {
// What checkpoints may be stored in: f16 would overflow and underflow.
constexpr auto enum_names(DType) {
  return std::array{EnumName{DType::f32, "f32"}, EnumName{DType::bf16, "bf16"}};
}
constexpr auto enum_names(SourceKind) {
  using enum SourceKind;
  return std::array{EnumName{current, "current"}, EnumName{initial, "initial"}, EnumName{recent, "recent"},
                    EnumName{bank, "bank"}, EnumName{mix, "mix"}};
}
}  // namespace ropd

namespace ropd::kernels {
constexpr auto enum_names(Precision) {
  using enum Precision;
  return std::array{EnumName{f32, name_of(f32)}, EnumName{bf16, name_of(bf16)},
                    EnumName{bf16_tiles, name_of(bf16_tiles)}};
}
}  // namespace ropd::kernels

namespace ropd::distill {
constexpr auto enum_names(ObjectiveKind) {
  using enum ObjectiveKind;
  return std::array{EnumName{candidates, "candidates"},
                    EnumName{sampled_token, "sampled_token"},
                    EnumName{renormalized, "renormalized"},
                    EnumName{tail_bucket, "tail_bucket"},
                    EnumName{full_reverse_kl, "full_reverse_kl"},
                    EnumName{full_forward_kl, "full_forward_kl"},
                    EnumName{jsd, "jsd"}};
}
constexpr auto enum_names(CandidateWeights) {
  using enum CandidateWeights;
  return std::array{EnumName{student_p, "student_p"}, EnumName{teacher_p, "teacher_p"},
                    EnumName{uniform, "uniform"}};
}
constexpr auto enum_names(EosControl) {
  return std::array{EnumName{EosControl::all, "all"}, EnumName{EosControl::none, "none"},
                    EnumName{EosControl::only, "only"}};
}
}  // namespace ropd::distill

namespace ropd::train {

using kernels::Precision;

enum class Reduction { dynamic_microbatch, minibatch_tokens, source_balanced };
constexpr auto enum_names(Reduction) {
  return std::array{EnumName{Reduction::dynamic_microbatch, "dynamic_microbatch"},
                    EnumName{Reduction::minibatch_tokens, "minibatch_tokens"},
                    EnumName{Reduction::source_balanced, "source_balanced"}};
}
enum class Rescore { iteration, minibatch };
constexpr auto enum_names(Rescore) {
  return std::array{EnumName{Rescore::iteration, "iteration"}, EnumName{Rescore::minibatch, "minibatch"}};
}
enum class Order { recorded, ranks, ranks_balanced };
constexpr auto enum_names(Order) {
  return std::array{EnumName{Order::recorded, "recorded"}, EnumName{Order::ranks, "ranks"},
                    EnumName{Order::ranks_balanced, "ranks_balanced"}};
}
enum class StageEnd { trigger };
constexpr auto enum_names(StageEnd) { return std::array{EnumName{StageEnd::trigger, "trigger"}}; }
enum class Watch { trigger_stages, always };
constexpr auto enum_names(Watch) {
  return std::array{EnumName{Watch::trigger_stages, "trigger_stages"}, EnumName{Watch::always, "always"}};
}
enum class TriggerKind { noise, kl_plateau, length_plateau, fixed };
constexpr auto enum_names(TriggerKind) {
  using enum TriggerKind;
  return std::array{EnumName{noise, "noise"}, EnumName{kl_plateau, "kl_plateau"},
                    EnumName{length_plateau, "length_plateau"}, EnumName{fixed, "fixed"}};
}
enum class Storage { memory, file };
constexpr auto enum_names(Storage) {
  return std::array{EnumName{Storage::memory, "memory"}, EnumName{Storage::file, "file"}};
}

struct SelectConfig {
  std::optional<uint64_t> count;
  uint64_t seed = 20260829;
  std::optional<uint64_t> first;
  std::vector<std::string> ids;
  bool all = false;
  void fields(auto&& field) {
    field("count", count, "random queries; 48 when none of count, first, ids and all is given", at_least(1));
    field("seed", seed, "of the random choice");
    field("first", first, "or the first so many", at_least(1));
    field("ids", ids, "or these");
    field("all", all, "or every query of the file");
  }
  void validate(const ConfigPlace& place = {}) const;
};

struct DataConfig {
  std::string queries;
  SelectConfig select;
  uint64_t order_seed = 0;
  bool grouped = false;
  uint64_t max_prompt_tokens = 1024;
  std::string prompt_prefix;
  std::string prompt_suffix = " Please reason step by step, and put your final answer within \\boxed{}.";
  bool thinking = false;
  void fields(auto&& field) {
    field("queries", queries, "JSONL or parquet with problem or prompt, answer, id; verl rows are read too");
    field("select", select, "which queries of the file");
    field("order_seed", order_seed, "0 keeps the order; n permutes once before the run");
    field("grouped", grouped,
          "the responses to one query stand together in a batch instead of queries taking turns");
    field("max_prompt_tokens", max_prompt_tokens, "longer prompts are dropped and counted", at_least(1));
    field("prompt_prefix", prompt_prefix, "put before every question");
    field("prompt_suffix", prompt_suffix, "put behind every question");
    field("thinking", thinking, "the chat template's enable_thinking");
  }
};

struct RolloutConfig {
  uint64_t max_response_tokens = 16384;
  double temperature = 1.0;
  double top_p = 1.0;
  Precision precision = Precision::bf16;
  Auto<double> memory_gb;
  void fields(auto&& field) {
    field("max_response_tokens", max_response_tokens, "longer responses are cut", between(1, 1 << 24));
    field("temperature", temperature, "student logits are divided by it, in sampling and in scoring",
          above(0));
    field("top_p", top_p, "nucleus sampling; 1 = off", Range{.low = 0, .high = 1, .excludes_low = true});
    field("precision", precision,
          "of matrix products while sampling; bf16_tiles adds as matrix units do: faster with Intel AMX, "
          "slower "
          "elsewhere, the same bits everywhere");
    field("memory_gb", memory_gb, "for keys and values; auto = what is free", above(0));
  }
};

struct OptimizationConfig {
  uint64_t iterations = 15;
  uint64_t responses_per_iteration = 480;
  uint64_t minibatch = 128;
  double learning_rate = 1e-6;
  std::array<double, 2> betas = {0.9, 0.999};
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double grad_clip = 1.0;
  Precision precision = Precision::f32;
  Precision teacher_precision = Precision::bf16;
  Reduction reduction = Reduction::dynamic_microbatch;
  uint64_t shards = 8;
  uint64_t microbatch_tokens = 32768;
  Rescore rescore = Rescore::iteration;
  Order order = Order::recorded;
  uint64_t max_skipped_steps = 3;
  uint64_t teacher_ranks = 0;
  Auto<double> activation_memory_gb;
  Auto<double> teacher_memory_gb;
  Storage optimizer_storage = Storage::memory;
  void fields(auto&& field) {
    field("iterations", iterations, "of the whole run", at_least(1));
    field("responses_per_iteration", responses_per_iteration, "sampled or taken from a bank", at_least(1));
    field("minibatch", minibatch, "responses an AdamW update; the last one of an iteration may be shorter",
          at_least(1));
    field("learning_rate", learning_rate, "constant, no warmup", at_least(0));
    field("betas", betas, "of AdamW", Range{.low = 0, .high = 1});
    field("epsilon", epsilon, "of AdamW", above(0));
    field("weight_decay", weight_decay, "decoupled, on every parameter", at_least(0));
    field("grad_clip", grad_clip, "largest global norm of a gradient; 0 = off", at_least(0));
    field("precision", precision,
          "of the student's matrix products in scoring and training; master weights are f32");
    field("teacher_precision", teacher_precision, "of the teacher's matrix products");
    field("reduction", reduction, "how token losses become the loss of a minibatch");
    field("shards", shards,
          "parts of a minibatch that are packed each on its own and whose gradients are added in order; 8 = "
          "the "
          "paper's ranks",
          between(1, 1 << 16));
    field("microbatch_tokens", microbatch_tokens, "of a shard, packed into one forward and backward pass",
          at_least(1));
    field("rescore", rescore, "when candidates, coefficients and the old policy are computed");
    field("order", order,
          "which responses share a minibatch: consecutive ones, or as a data-parallel trainer divides them "
          "(every rank's next piece, a rank is a shard), also behind its length balancing");
    field("max_skipped_steps", max_skipped_steps, "stop after so many non-finite steps in a row; 0 = never");
    field("teacher_ranks", teacher_ranks,
          "of several processes only the last so many read the teacher and score; 0 = all");
    field("activation_memory_gb", activation_memory_gb,
          "kept between forward and backward; the rest is recomputed", above(0));
    field("teacher_memory_gb", teacher_memory_gb,
          "for the teacher while it scores, activations included; where it does not fit it is streamed layer "
          "by "
          "layer, the same bits; less than one layer means one layer; auto = what is free",
          at_least(0));
    field("optimizer_storage", optimizer_storage,
          "of AdamW's two moments: memory, or a scratch file beside the checkpoints");
  }
  void validate(const ConfigPlace& place = {}) const;
};

struct ObjectiveSection {
  distill::ObjectiveKind kind = distill::ObjectiveKind::candidates;
  uint32_t top_k = distill::ObjectiveDefaults::top_k;
  distill::CandidateWeights weights = distill::CandidateWeights::student_p;
  double clip = distill::ObjectiveDefaults::clip;
  double dual_clip = distill::ObjectiveDefaults::dual_clip;
  double max_log_ratio = distill::ObjectiveDefaults::max_log_ratio;
  distill::EosControl eos = distill::EosControl::all;
  double teacher_temperature = distill::ObjectiveDefaults::temperature;
  double beta = distill::ObjectiveDefaults::beta;
  void fields(auto&& field) {
    field("kind", kind, "candidates is the paper's");
    field("top_k", top_k, "candidates a position; 0 = the recorded token only", between(0, 256));
    field("weights", weights, "of the candidates in the coefficient");
    field("clip", clip, "of the ratio: [1 - clip, 1 + clip]", between(0, 1));
    field("dual_clip", dual_clip, "of the ratio where the coefficient is negative", above(1));
    field("max_log_ratio", max_log_ratio, "the log ratio is clamped to +- this", above(0));
    field("eos", eos, "which candidates keep their coefficient: all, all but EOS, or EOS only");
    field("teacher_temperature", teacher_temperature, "teacher logits are divided by it", above(0));
    field("beta", beta, "of jsd: weight of the teacher in the mixture",
          Range{.low = 0, .high = 1, .excludes_low = true});
  }
  void validate(const ConfigPlace& place = {}) const;
};

struct BankConfig {
  uint64_t responses = 2400;
  void fields(auto&& field) { field("responses", responses, "in a bank sampled by the run", at_least(1)); }
};

struct StageConfig {
  SourceKind source = SourceKind::current;
  std::optional<uint64_t> iterations;
  std::optional<StageEnd> until;
  std::optional<uint64_t> step;
  std::optional<std::string> path;
  std::vector<std::string> of;
  std::vector<uint64_t> ratio, ratio_to;
  void fields(auto&& field) {
    field("source", source, "where the rollouts come from");
    field("iterations", iterations, "ends after so many", at_least(1));
    field("until", until, "or ends by the gradient trigger; with neither it lasts to the end");
    field("step", step, "of recent: the optimization step whose student is frozen", at_least(1));
    field("path", path, "of bank: a rollout file");
    field("of", of, "of mix: its sources: current, initial, recent:STEP, bank:FILE");
    field("ratio", ratio, "of mix: responses from each, up to a factor; none = equal numbers",
          between(0, curriculum::kMaxRatio));
    field("ratio_to", ratio_to,
          "of mix: the ratio of the stage's last iteration, reached in equal steps; none = it stays",
          between(0, curriculum::kMaxRatio));
  }
  void validate(const ConfigPlace& place = {}) const;
};

struct CurriculumConfig {
  BankConfig bank;
  std::vector<StageConfig> stages = {{.source = SourceKind::current, .until = StageEnd::trigger},
                                     {.source = SourceKind::initial}};
  void fields(auto&& field) {
    field("bank", bank, "of the initial student, or of a recent one, if a stage uses it");
    field("stages", stages, "in order");
  }
};

// When a trigger is set (curriculum/trigger.h).
struct TriggerRule {
  TriggerKind kind = TriggerKind::noise;
  uint64_t persistence = 2;
  double threshold = 1.0;
  uint64_t earliest = 1;
  double tolerance = 0.05;
  uint64_t window = 1;
  std::optional<uint64_t> iteration;
  void fields(auto&& field) {
    field("kind", kind,
          "noise is the paper's: D <= c V; a plateau of the KL estimate or of the mean response length; a "
          "fixed "
          "iteration");
    field("persistence", persistence, "qualifying iterations in a row that set it; fixed needs one",
          at_least(1));
    field("threshold", threshold, "of noise: c in D <= c V", above(0));
    field("earliest", earliest, "the first iteration that may set it", at_least(1));
    field("tolerance", tolerance, "of a plateau: relative change that is none", at_least(0));
    field("window", window, "of a plateau: iterations in each of the two means that are compared",
          between(1, 1000));
    field("iteration", iteration, "of fixed: the one that sets it", at_least(1));
  }
  void validate(const ConfigPlace& place = {}) const;
};

struct WatchedTriggerConfig {
  std::string name;
  TriggerRule rule;
  void fields(auto&& field) {
    field("name", name, "in the metrics");
    rule.fields(field);
  }
  void validate(const ConfigPlace& place = {}) const;
};

struct TriggerConfig {
  TriggerRule rule;
  std::vector<WatchedTriggerConfig> watched;
  Watch watch = Watch::trigger_stages;
  Storage storage = Storage::memory;
  void fields(auto&& field) {
    rule.fields(field);
    field("watched", watched, "other triggers: where they would have been set is recorded, and nothing more");
    field("watch", watch,
          "when D and V are computed: up to the trigger, or in every current-policy iteration");
    field("storage", storage,
          "of its two gradient-sized vectors: memory, or a scratch file beside the checkpoints");
  }
  void validate(const ConfigPlace& place = {}) const;
};

struct CheckpointConfig {
  uint64_t every = 1;
  uint64_t keep = 3;
  std::vector<uint64_t> keep_steps;
  Auto<DType> dtype;
  void fields(auto&& field) {
    field("every", every, "iterations; 0 = only at the end and when stopped");
    field("keep", keep, "the newest so many; 0 = all");
    field("keep_steps", keep_steps, "optimization steps whose checkpoint is never removed");
    field("dtype", dtype,
          "of the weights in model/; auto = bf16 where the student's files are, else f32; going on is exact "
          "with both");
  }
};

struct EvalConfig {
  std::optional<std::string> suite;
  uint64_t every = 0;
  std::string data = ".";
  uint64_t max_tokens = 32768;
  std::vector<uint64_t> budgets;
  void fields(auto&& field) {
    field("suite", suite, "eight, three or a YAML file; evaluated at the end of the run");
    field("every", every, "and after every so many iterations; 0 = only at the end");
    field("data", data, "folder of the suite's benchmark files");
    field("max_tokens", max_tokens, "of a response", at_least(1));
    field("budgets", budgets, "tokens at which responses are scored; none = max_tokens");
  }
};

struct AlarmConfig {
  double student_mass = 0.9;
  double length_factor = 3.0;
  double truncation = 0.5;
  double drift = 0.05;
  double divergence = 2.0;
  void fields(auto&& field) {
    field("student_mass", student_mass, "warn when the student's mass inside the candidates falls below",
          between(0, 1));
    field("length_factor", length_factor,
          "warn when mean length exceeds the first iteration's by this factor; 0 = off", at_least(0));
    field("truncation", truncation, "warn when more than this share of responses is cut", between(0, 1));
    field("drift", drift,
          "warn when rollout and trainer log-probabilities differ by more on average; 0 = off", at_least(0));
    field("divergence", divergence,
          "warn when KL exceeds its source's first value by this factor, or the gradient is zero; 0 = off",
          at_least(0));
  }
};

struct MetricsConfig {
  uint64_t samples = 8;
  void fields(auto&& field) {
    field("samples", samples, "responses of each iteration kept for reading (samples/); 0 = none",
          between(0, 1000));
  }
};

struct TrainConfig {
  std::string student;
  std::string teacher;
  std::string student_base, teacher_base;
  std::string output;
  uint64_t seed = 1;
  DataConfig data;
  RolloutConfig rollout;
  OptimizationConfig train;
  ObjectiveSection objective;
  CurriculumConfig curriculum;
  TriggerConfig trigger;
  std::optional<AdapterSection> adapter;
  CheckpointConfig checkpoint;
  std::optional<std::string> continue_from;
  EvalConfig eval;
  AlarmConfig alarms;
  MetricsConfig metrics;
  void fields(auto&& field) {
    field("student", student, "model directory, adapter directory, checkpoint or run; required");
    field("teacher", teacher, "likewise; required");
    field(
        "student_base", student_base,
        "of a student that is an adapter: folder of its base, where its own config names none that is here");
    field("teacher_base", teacher_base, "of a teacher that is an adapter, likewise");
    field("output", output, "run directory; required");
    field("seed", seed, "of sampling");
    field("data", data, "queries; may be absent when every stage reads a bank from a file");
    field("rollout", rollout, "sampling");
    field("train", train, "iterations and AdamW");
    field("objective", objective, "the loss");
    field("curriculum", curriculum, "sources over time");
    field("trigger", trigger, "of R-OPD");
    field("adapter", adapter, "trains a low-rank adapter on the frozen student; null = every parameter");
    field("checkpoint", checkpoint, "saving");
    field("continue_from", continue_from, "checkpoint whose weights and optimizer state are restored first");
    field("eval", eval, "evaluation inside the run");
    field("alarms", alarms, "what deserves a warning");
    field("metrics", metrics, "what is kept beside the numbers");
  }
  // Impossible combinations of sections; each section checks itself.
  void validate(const ConfigPlace& place = {}) const;
};

// The file with its overrides, complete: what the resolved config.yaml holds.
TrainConfig load_train_config(const Path& path, std::span<const std::string> overrides = {});
// The config.yaml of an existing run. The version that began it may not have known every setting of today;
// those have the value that it worked by: train.shards is 1, checkpoint.dtype f32. A setting that has gone
// (train.length_balanced) is dropped where it was off and refused where it was on.
TrainConfig load_run_config(const Path& path);
TrainConfig parse_run_config(std::string_view yaml, std::string_view where,
                             std::span<const std::string> overrides = {});
TrainConfig parse_train_config(std::string_view yaml, std::string_view where,
                               std::span<const std::string> overrides = {});

// --- what the settings mean for the parts ---

uint64_t steps_per_iteration(const TrainConfig& config);
// A stage of one iteration on this source; make_source() of it is the source.
StageConfig stage_config(const Source& source);
// Shows every path of a bank in the stages, in order, and takes over what becomes of it.
void visit_bank_paths(CurriculumConfig& curriculum, const std::function<void(std::string& path)>& visit);
std::vector<curriculum::Stage> make_stages(const TrainConfig& config);
// first_step: optimization steps before the run, in a continuation.
curriculum::Curriculum make_curriculum(const TrainConfig& config, uint64_t first_step = 0);
std::unique_ptr<curriculum::Trigger> make_trigger(const TriggerRule& rule);
optim::AdamWSettings adamw_settings(const TrainConfig& config);
distill::ObjectiveConfig objective_config(const TrainConfig& config, std::vector<Token> eos_ids);
size_t activation_budget(const TrainConfig& config);                  // bytes
std::optional<uint64_t> teacher_budget(const TrainConfig& config);    // bytes; nothing = what is free
std::optional<Selection> query_selection(const TrainConfig& config);  // nothing = all
bool needs_sampling(const TrainConfig& config);                       // and with it queries and a tokenizer

// Settings that are allowed but probably not meant, each a sentence.
std::vector<std::string> config_warnings(const TrainConfig& config);

}  // namespace ropd::train
