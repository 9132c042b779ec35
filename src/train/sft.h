// Supervised fine-tuning on the same engine: weighted cross-entropy over given responses, packed batches,
// AdamW with warmup and cosine decay, checkpoints and exact resume.
//   loss = sum_t w_t (-log pi(y_t | prompt, y_<t)) / sum_t w_t        over the tokens of one step
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config_fields.h"
#include "base/file.h"
#include "io/input_ledger.h"
#include "model/weights.h"
#include "records/sft_example.h"
#include "train/adapter_learner.h"
#include "train/session.h"
#include "train/train_config.h"

namespace ropd::train {

struct SftConfig {
  std::string model, base;
  std::string data;
  std::string output;
  uint64_t seed = 1;
  uint64_t steps = 0;
  uint64_t epochs = 1;
  uint64_t batch_tokens = 8192;
  uint64_t microbatch_tokens = 8192;
  uint64_t max_tokens = 4096;
  double learning_rate = 1e-5;
  double final_learning_rate = 0;
  uint64_t warmup_steps = 0;
  std::array<double, 2> betas = {0.9, 0.999};
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double grad_clip = 1.0;
  Precision precision = Precision::f32;
  std::optional<AdapterSection> adapter;
  uint64_t checkpoint_every = 200;
  uint64_t checkpoint_keep = 2;
  std::string prompt_prefix;
  std::string prompt_suffix;
  bool thinking = false;
  void fields(auto&& field) {
    field("model", model, "model directory to start from; an adapter directory: merged");
    field("base", base, "of an adapter: folder of its base, where its own config names none that is here");
    field("data", data,
          "JSONL of {prompt or messages or prompt_ids, response or response_ids, optional loss_weights}");
    field("output", output, "run directory; the result is output/model");
    field("seed", seed, "of the data order");
    field("steps", steps, "optimization steps; 0 = as many as the epochs need");
    field("epochs", epochs, "passes over the data when steps is 0", at_least(1));
    field("batch_tokens", batch_tokens, "prompt and response tokens a step", at_least(1));
    field("microbatch_tokens", microbatch_tokens, "packed into one forward and backward pass", at_least(1));
    field("max_tokens", max_tokens, "longer examples are dropped and counted", at_least(2));
    field("learning_rate", learning_rate, "peak, reached after the warmup", above(0));
    field("final_learning_rate", final_learning_rate, "where the cosine ends", at_least(0));
    field("warmup_steps", warmup_steps, "linear from 0");
    field("betas", betas, "of AdamW", Range{.low = 0, .high = 1});
    field("epsilon", epsilon, "of AdamW", above(0));
    field("weight_decay", weight_decay, "decoupled", at_least(0));
    field("grad_clip", grad_clip, "largest global norm; 0 = off", at_least(0));
    field("precision", precision, "of matrix products");
    field("adapter", adapter, "trains a low-rank adapter on the frozen model; null = every parameter");
    field("checkpoint_every", checkpoint_every, "steps; 0 = only at the end and when stopped");
    field("checkpoint_keep", checkpoint_keep, "the newest so many; 0 = all");
    field("prompt_prefix", prompt_prefix, "put before every prompt");
    field("prompt_suffix", prompt_suffix, "put behind every prompt");
    field("thinking", thinking, "the chat template's enable_thinking");
  }
  void validate(const ConfigPlace& place = {}) const;
};

// Where examples come from: number `index` of an endless stream, when a share `progress` of the steps is
// done. Must be a pure function: resuming asks for the same indices again.
using ExampleStream = std::function<SftExample(uint64_t index, double progress)>;

// lr of step `step` (from 0).
double learning_rate_at(const SftConfig& config, uint64_t step, uint64_t total_steps);

struct SftProgress {
  uint64_t step = 0;
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  uint64_t tokens = 0;       // of the step
  uint64_t loss_tokens = 0;  // with a weight above zero
};

LearnerConfig learner_config(const SftConfig& config);

// The training itself. Not thread-safe; the learner must outlive it.
class SftTrainer {
 public:
  SftTrainer(const SftConfig& config, Learner& learner, uint64_t total_steps)
      : config_(config), learner_(learner), total_steps_(total_steps) {}
  SftProgress step(const ExampleStream& examples);
  uint64_t steps_done() const { return step_; }
  void save(const Path& folder) const;
  void restore(const Path& folder);

 private:
  const SftConfig config_;
  Learner& learner_;
  const uint64_t total_steps_;
  uint64_t step_ = 0, next_example_ = 0;
};

// By role: model and data. Those that are files.
std::map<std::string, std::vector<io::InputFile>> sft_inputs(const SftConfig& config);

// A whole run with checkpoints; `start` gives the weights of step 0 where all of them are trained. Resumes when
// config.output holds the same run, whose config.yaml is `yaml`: that of config unless a run is taken up from
// elsewhere (sft_run.h).
RunOutcome run_sft(const SftConfig& config, const ExampleStream& examples, uint64_t total_steps,
                   const std::function<model::Parameters()>& start, std::string yaml = "");

// The dataset of config.data as a stream (permuted anew every epoch) and the number of steps for its epochs.
struct SftData {
  ExampleStream examples;
  uint64_t num_examples = 0;
  uint64_t num_too_long = 0;
  uint64_t steps = 0;
};
SftData load_sft_data(const SftConfig& config);

}  // namespace ropd::train
