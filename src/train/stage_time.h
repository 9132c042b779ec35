// The time of an iteration's stages on a machine whose speed is known.
#pragma once
#include <cstdint>
#include <vector>

#include "records/model_config.h"
#include "train/train_config.h"

namespace ropd::train {

// Parameters that a token passes through, of experts only those it is sent to.
double block_parameters(const ModelConfig& config);
double head_parameters(const ModelConfig& config);

// Seconds a token.
struct PassSpeed {
  double blocks = 0, head = 0;
};

// Seconds of a step that gives each of so many sequences a token.
struct DecodeSpeed {
  double sequences = 0, seconds = 0;
};

// Of a trial's sequence; long enough that packing weights, once a microbatch, is a small part as in a run.
inline constexpr int64_t kTrialTokens = 1024;
inline constexpr double kAttentionGradShare =
    2.5;  // the gradient takes five products where attention takes two
// What a machine does of each stage, over sequences of kTrialTokens: measured (app/stage_speeds.h), or
// guessed_speeds().
struct StageSpeeds {
  PassSpeed student, teacher, update;  // scoring, and the gradient with its forward pass
  std::vector<DecodeSpeed> decode;     // by growing number of sequences, behind a short context
  double attention_flops = 1e11;       // a second, over contexts beyond those of the trials
  double attention_grad_flops = 1e11;
  double memory_bytes = 2e10;  // a second: keys and values, the optimizer's state
  double disk_bytes = 1e9;     // a second: scratch files
};

// From the speed of a large product alone.
StageSpeeds guessed_speeds(const ModelConfig& student, const ModelConfig& teacher, double flops,
                           bool is_adapter);

// Of a question with its template, as time is planned.
double usual_prompt_tokens(const TrainConfig& config);

// Lengths that vary as if each token might be the last, up to the longest that is allowed: with a mean close to it nearly
// all have that length.
struct ResponseLengths {
  ResponseLengths(double mean, double longest);
  double mean, longest;
  double scale;  // of n responses e^(-t / scale) n go on behind token t
  double
      look_back;  // tokens of the response before a token, on average over all tokens: most belong to long responses
};

// What there is to do besides what the configuration says.
struct StageWork {
  double response_tokens = 0;    // of a response, on average: see ResponseLengths
  double recomputed_layers = 0;  // share of layers that the gradient computes a second time
  uint64_t parameters = 0;       // trained
  bool is_watched = false;       // by the trigger
  uint64_t scratch_bytes = 0;    // read and written an update
};

// Of one iteration on one machine, without what only several machines have.
struct StageSeconds {
  double sampling = 0, student = 0, teacher = 0, updates = 0;
  double sum() const { return sampling + student + teacher + updates; }
};
StageSeconds stage_seconds(const TrainConfig& config, const ModelConfig& student, const ModelConfig& teacher,
                           const StageSpeeds& speeds, const StageWork& work);

// Of sampling so many responses.
double sampling_seconds(const TrainConfig& config, const ModelConfig& student, const StageSpeeds& speeds,
                        double responses, double response_tokens);

}  // namespace ropd::train
