// What one optimization step and one iteration leave behind: the lines of metrics.jsonl and the curves of the
// report. Each record has one field list, fields(field): field(json_name, member, meaning). It drives
// writing, reading, TensorBoard tags and docs/formats.md, so a name exists once. Names are verl's where the
// meaning is the same (`actor/grad_norm`, `response_length/mean`, `timing_s/gen`) and the plain words of
// formats.md for the rest (`loss`, `D`, `V`, `ratio`, `tau`). Units: seconds, bytes, natural logarithms.
// Means over tokens are over all valid response tokens of the record's rollouts. std::optional = does not
// apply here (left out of the line); a non-finite number is written as null and read as NaN.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ropd {

// How the policies meet on the scored tokens; in a step over its minibatch, in an iteration over its whole
// batch.
struct DistillationMeans {
  double student_mass = 0;  // probability the student gives to its candidates, full-vocabulary normalised
  double teacher_mass = 0;  // probability the teacher gives to the same candidates
  double overlap = 0;       // share of the student's candidates that are among the teacher's own top k
  double kl_candidates =
      0;  // sum_j pbar_j (student - teacher logprob): renormalised reverse KL; the loss where r = 1
  double kl_sampled =
      0;  // student - teacher logprob of the recorded token: unbiased only on current-policy text
  double entropy = 0;  // of the student, full vocabulary
  double masked_fraction =
      0;  // share of candidates without a teacher id (cross-tokenizer), EOS-masked ones included

  void fields(auto&& field) {
    field("actor/distillation/student_mass", student_mass, "student probability inside the candidates");
    field("actor/distillation/teacher_mass", teacher_mass, "teacher probability inside the candidates");
    field("actor/distillation/overlap_ratio", overlap, "share of candidates in the teacher's own top k");
    field("actor/distillation/kl", kl_candidates, "KL estimate: reverse KL over the renormalised candidates");
    field("actor/distillation/kl_sampled", kl_sampled, "KL estimate from the recorded tokens only (k1)");
    field("actor/entropy", entropy, "student entropy over the full vocabulary");
    field("actor/distillation/masked_fraction", masked_fraction, "share of candidates that were masked");
  }
};

// How far the updated policy has left the one at scoring time; shares of (token, candidate) terms.
struct ClipMeans {
  double clip_fraction = 0;       // ratio outside [1-eps, 1+eps] on the side that stops the gradient
  double dual_clip_fraction = 0;  // A < 0 and ratio above the dual clip
  double clamp_fraction = 0;      // |log ratio| reached the clamp (20)
  double policy_kl = 0;           // mean old - new logprob over the candidates, weighted by the old policy

  void fields(auto&& field) {
    field("actor/pg_clipfrac", clip_fraction, "share of terms whose gradient the ratio clip stops");
    field("actor/pg_clipfrac_lower", dual_clip_fraction, "share of terms stopped by the dual clip");
    field("actor/logratio_clamp_fraction", clamp_fraction, "share of terms at the log-ratio clamp");
    field("actor/ppo_kl", policy_kl, "old minus new log-probability over the candidates");
  }
};

// One AdamW update, or one that was skipped because its gradient was not finite.
struct StepRecord {
  uint64_t step = 0;       // U: minibatches processed so far, this one included; skipped ones count
  uint64_t iteration = 0;  // from 1
  uint32_t minibatch = 0;  // from 0 in its iteration
  double unix_time = 0;    // when it ended
  std::string source;      // source_name()
  uint32_t sequences = 0;
  uint64_t tokens = 0;  // valid response tokens
  uint32_t microbatches = 0;
  double loss = 0;       // with the reduction and the short-minibatch factor of the config
  double grad_norm = 0;  // global norm before clipping
  double learning_rate = 0;
  double scale = 1;  // sequences / nominal minibatch: 0.75 for 96 of 128
  DistillationMeans distillation;
  ClipMeans clip;
  bool skipped = false;     // no update was made
  std::string skip_reason;  // the tensor with the first non-finite value
  double tokens_per_second = 0;
  double seconds_gradient = 0;  // forward, objective, backward
  double seconds_trigger = 0;
  double seconds_optimizer = 0;  // clip and AdamW

  void fields(auto&& field) {
    field("step", step, "optimization step, from 1");
    field("iteration", iteration, "iteration, from 1");
    field("minibatch", minibatch, "minibatch of the iteration, from 0");
    field("unix_time", unix_time, "when it ended, seconds since 1970");
    field("source", source, "where the rollouts come from");
    field("sequences", sequences, "responses in the minibatch");
    field("tokens", tokens, "valid response tokens in the minibatch");
    field("microbatches", microbatches, "forward/backward passes it was packed into");
    field("loss", loss, "loss of the minibatch under the configured reduction");
    field("grad_norm", grad_norm, "global gradient norm before clipping");
    field("actor/grad_norm", grad_norm, "the same under verl's name");
    field("actor/lr", learning_rate, "AdamW step size");
    field("minibatch_scale", scale, "sequences over nominal minibatch size");
    distillation.fields(field);
    clip.fields(field);
    field("skipped", skipped, "true: non-finite gradient, no update");
    field("skip_reason", skip_reason, "first non-finite tensor");
    field("perf/throughput", tokens_per_second, "response tokens a second in this step");
    field("timing_s/gradient", seconds_gradient, "forward, objective, backward");
    field("timing_s/trigger", seconds_trigger, "gradient statistics");
    field("timing_s/optimizer", seconds_optimizer, "clipping and AdamW");
  }
};

// What a trigger that only watches said of an iteration.
struct WatchedRecord {
  std::string name;
  std::optional<bool> qualifies;        // absent: it cannot be said
  std::optional<uint64_t> consecutive;  // absent on stored rollouts
  std::optional<uint64_t> tau;          // where it would have been set, from then on

  bool operator==(const WatchedRecord&) const = default;
  void fields(auto&& field) {
    field("name", name, "of the trigger in trigger.watched");
    field("qualifies", qualifies, "does the iteration speak for the switch");
    field("consecutive", consecutive, "such iterations in a row");
    field("tau", tau, "iteration at which it would have been set");
  }
};

// What the triggers saw at the end of an iteration (method.md section 5).
struct TriggerRecord {
  std::optional<double> within;         // v_k; absent with fewer than two minibatches or on stored rollouts
  std::optional<double> distance;       // D_k; absent when there is nothing to compare with
  std::optional<double> noise;          // V_k
  std::optional<double> ratio;          // D_k / V_k; absent when V_k = 0
  std::optional<bool> qualifies;        // speaks for the switch: D_k <= c V_k, or what the trigger asks
  std::optional<uint64_t> consecutive;  // qualifying comparisons in a row, this one included
  std::optional<uint64_t> tau;          // the iteration that set the trigger, from then on
  std::string note;                     // why there is no comparison; empty when there is one
  std::vector<WatchedRecord> watched = {};

  void fields(auto&& field) {
    field("v", within, "v_k: variance of the mean gradient inside the iteration");
    field("D", distance, "D_k: squared distance of the mean gradients");
    field("V", noise, "V_k = v_k + v_p(k)");
    field("ratio", ratio, "D / V");
    field("qualifies", qualifies, "does the iteration speak for the switch: D <= V");
    field("consecutive", consecutive, "qualifying iterations in a row");
    field("tau", tau, "iteration at which the trigger was set");
    field("trigger_note", note, "why there is no comparison");
    field("watched", watched,
          "triggers that only watch, each with name, qualifies, consecutive and tau, where it would have "
          "been set");
  }
};

struct StageSeconds {
  double rollout = 0;
  double score_student = 0;
  double score_teacher = 0;
  double update = 0;              // all minibatches: gradient, trigger, optimizer
  double refresh = 0;             // new weights packed for the rollout engine; not part of rollout
  double checkpoint = 0;          // waiting for the save before this iteration, if any
  double checkpoint_writing = 0;  // what that save took, most of it beside this iteration
  double evaluation = 0;          // of the one before this iteration; not part of total
  double one_thread = 0;          // since the line before: only one thread had work
  // Of the iteration from its rollouts to its trigger, summed over the sessions that worked on it. A session
  // that was stopped while sampling leaves its responses, but not its seconds.
  double total = 0;

  void fields(auto&& field) {
    field("timing_s/gen", rollout, "sampling or reading rollouts");
    field("timing_s/old_log_prob", score_student, "scoring by the student");
    field("timing_s/teacher", score_teacher, "scoring by the teacher");
    field("timing_s/update_actor", update, "all minibatches of the iteration");
    field("timing_s/update_weights", refresh, "packing new weights for the rollout engine");
    field("timing_s/save_checkpoint", checkpoint, "waiting for the checkpoint before this iteration");
    field("timing_s/write_checkpoint", checkpoint_writing,
          "writing it, beside this iteration until its first update");
    field("timing_s/testing", evaluation, "the evaluation before this iteration, not in step");
    field("timing_s/one_thread", one_thread,
          "since the iteration before ended, files and checkpoints included: only one thread had work");
    field("timing_s/step", total, "the iteration, all its sessions; of stopped sampling only the last");
  }
};

struct IterationRecord {
  uint64_t iteration = 0;    // from 1
  uint64_t step = 0;         // U after it
  double unix_time = 0;      // when it ended
  uint32_t stage = 0;        // of the curriculum, from 0
  std::string source;        // source_name()
  uint64_t policy_step = 0;  // of the student that scored it (and sampled it, if current)
  double loss = 0;           // mean over its steps that were not skipped
  double grad_norm = 0;      // likewise
  TriggerRecord trigger;
  // the batch
  uint32_t responses = 0;
  uint64_t response_tokens = 0;
  uint64_t prompt_tokens = 0;
  double response_length_mean = 0;
  double response_length_min = 0;
  double response_length_max = 0;
  double truncated = 0;  // share cut at the limit
  double prompt_length_mean = 0;
  double rollout_policy_age = 0;  // mean of policy_step - the rollouts' own policy_step
  DistillationMeans distillation;
  ClipMeans clip;
  std::optional<double>
      drift_mean;  // |rollout - trainer logprob| of sampled tokens; current-policy rollouts only
  std::optional<double> drift_max;
  // cost
  double tokens_per_second = 0;                     // response tokens / total seconds
  std::optional<double> rollout_tokens_per_second;  // absent when nothing was sampled
  double score_tokens_per_second = 0;
  double update_tokens_per_second = 0;
  StageSeconds seconds;
  uint64_t peak_memory_bytes = 0;
  std::optional<uint64_t> teacher_passes;      // through a teacher that is streamed layer by layer
  std::optional<uint64_t> teacher_read_bytes;  // of its weights in these passes
  // the budget so far
  uint64_t consumed = 0;  // C: trajectories, replays count
  uint64_t queries = 0;   // N: distinct queries
  uint64_t rounds = 0;    // M: collection rounds
  uint64_t skipped_steps = 0;
  std::vector<std::string> alarms;
  std::vector<StepRecord> steps;  // not part of the line: each has its own

  void fields(auto&& field) {
    field("iteration", iteration, "iteration, from 1");
    field("step", step, "U: optimization steps so far");
    field("unix_time", unix_time, "when it ended, seconds since 1970");
    field("stage", stage, "stage of the curriculum, from 0");
    field("source", source, "where the rollouts come from");
    field("policy_step", policy_step, "optimization step of the scoring student");
    field("loss", loss, "mean loss of its steps");
    field("grad_norm", grad_norm, "mean gradient norm of its steps, before clipping");
    field("actor/grad_norm", grad_norm, "the same under verl's name");
    trigger.fields(field);
    field("responses", responses, "responses in the batch");
    field("response_tokens", response_tokens, "valid response tokens");
    field("prompt_tokens", prompt_tokens, "prompt tokens");
    field("response_length/mean", response_length_mean, "tokens, EOS included");
    field("response_length/min", response_length_min, "shortest response");
    field("response_length/max", response_length_max, "longest response");
    field("response_length/clip_ratio", truncated, "share of responses cut at the limit");
    field("prompt_length/mean", prompt_length_mean, "tokens");
    field("rollout/policy_age", rollout_policy_age, "optimization steps between sampling and scoring, mean");
    distillation.fields(field);
    clip.fields(field);
    field("rollout/logprob_drift_mean", drift_mean, "|rollout - trainer log-probability|, mean");
    field("rollout/logprob_drift_max", drift_max, "|rollout - trainer log-probability|, largest");
    field("perf/throughput", tokens_per_second, "response tokens a second, whole iteration");
    field("perf/rollout_throughput", rollout_tokens_per_second, "sampled tokens a second");
    field("perf/score_throughput", score_tokens_per_second, "scored response tokens a second");
    field("perf/update_throughput", update_tokens_per_second, "trained response tokens a second");
    seconds.fields(field);
    field("perf/peak_memory_bytes", peak_memory_bytes, "largest resident size of the process so far");
    field("perf/teacher_passes", teacher_passes, "of a streamed teacher: passes through its layers");
    field("perf/teacher_read_bytes", teacher_read_bytes,
          "and bytes of weights they read, from the disk or the system's cache");
    field("C", consumed, "trajectories consumed so far, replays counted");
    field("U", step, "optimization steps so far");
    field("N", queries, "distinct queries consumed so far");
    field("M", rounds, "collection rounds so far");
    field("skipped_steps", skipped_steps, "steps without update so far (non-finite gradient)");
    field("alarms", alarms, "what a person should look at");
  }
};

}  // namespace ropd
