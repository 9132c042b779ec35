#include "study/costs.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "eval/suite.h"
#include "train/plan.h"

namespace ropd::study {
namespace {

constexpr double kBytesPerToken = 8;    // of a response in JSONL
constexpr uint64_t kUsualQueries = 48;  // where the selection does not say how many

uint64_t num_queries(const train::TrainConfig& config) {
  return config.data.select.count.value_or(config.data.select.first.value_or(kUsualQueries));
}

TimeSpent now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
          seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

}  // namespace

uint64_t CostEstimator::responses_of(const EvaluationConfig& evaluation) {
  if (!std::filesystem::is_directory(evaluation.data)) return 0;
  auto [place, is_new] = suite_responses_.try_emplace(evaluation.suite + "\n" + evaluation.data);
  if (is_new) place->second = eval::load_suite(evaluation.suite, evaluation.data).num_responses();
  return place->second;
}

NodeCost CostEstimator::of(const Plan& plan, const Node& node) {
  const train::TrainConfig& config = runs_[node.run].config;
  const auto train_plan = train::make_plan(config, {.flops = flops_});
  const double student = static_cast<double>(train_plan.student_parameters),
               teacher = static_cast<double>(train_plan.teacher_parameters);
  NodeCost cost{.memory_bytes = train_plan.memory_bytes};
  // Passes through `parameters` weights for every token.
  const auto pass = [&](uint64_t responses, double parameters) {
    cost.rollouts = responses;
    cost.tokens = static_cast<double>(responses) * train_plan.assumed_length;
    cost.seconds = flops_ > 0 ? cost.tokens * 2 * parameters / flops_ : 0;
    cost.disk_bytes = static_cast<uint64_t>(kBytesPerToken * cost.tokens);
  };
  switch (node.kind) {
    case NodeKind::bank:
      pass(config.curriculum.bank.responses, student);
      break;
    case NodeKind::prefixes: {
      const DiagnosisConfig& diagnosis = study_.diagnoses[node.item];
      pass(num_queries(prompts_of(runs_[node.run], diagnosis)) * diagnosis.samples, student);
      break;
    }
    case NodeKind::evaluation:
      pass(responses_of(study_.evaluations[node.item]), student);
      break;
    case NodeKind::training: {
      uint64_t begin = 0;  // where the piece before it ends
      const auto& states = plan.runs[node.run].states;
      for (const std::string& need : node.needs)
        for (uint64_t k = 1; k < node.iteration; ++k)
          if (states[k] == need) begin = k;
      const uint64_t iterations = node.iteration - begin;
      cost.rollouts = iterations * config.train.responses_per_iteration;
      cost.tokens = static_cast<double>(cost.rollouts) * train_plan.assumed_length;
      cost.seconds = static_cast<double>(iterations) * train_plan.seconds_per_iteration;
      cost.disk_bytes = train_plan.checkpoint_bytes;
      break;
    }
    case NodeKind::diagnosis: {
      const DiagnosisConfig& diagnosis = study_.diagnoses[node.item];
      const uint64_t responses = num_queries(prompts_of(runs_[node.run], diagnosis)) * diagnosis.samples;
      const uint64_t probed = diagnosis.probes ? diagnosis.probes->trajectories : 0;
      // Student and the one that likelihoods are counted from, teacher; a gradient is three passes.
      pass(responses, 2 * student + teacher);
      cost.seconds += flops_ > 0 ? static_cast<double>(probed) * train_plan.assumed_length * 2 *
                                       (4 * student + teacher) / flops_
                                 : 0;
      cost.rollouts = 0;  // none are made
      cost.tokens = 0;
      break;
    }
  }
  return cost;
}

NodeCost CostEstimator::behind_trigger(size_t run) {
  const train::TrainConfig& config = runs_[run].config;
  const auto train_plan = train::make_plan(config, {.flops = flops_});
  const uint64_t iterations = (config.train.iterations + 1) / 2;
  NodeCost cost{.memory_bytes = train_plan.memory_bytes};
  cost.rollouts = iterations * config.train.responses_per_iteration;
  cost.tokens = static_cast<double>(cost.rollouts) * train_plan.assumed_length;
  cost.seconds = static_cast<double>(iterations) * train_plan.seconds_per_iteration;
  cost.disk_bytes = train_plan.checkpoint_bytes;
  return cost;
}

Stopwatch::Stopwatch() : begin_(now()) {}

TimeSpent Stopwatch::spent() const {
  const TimeSpent end = now();
  return {end.seconds - begin_.seconds, end.processor_seconds - begin_.processor_seconds};
}

}  // namespace ropd::study
