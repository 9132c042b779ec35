// Run directories as a training leaves them, with made-up but plausible numbers (close to the laboratory's
// prototype), for tests of the report. Deterministic. `hostile` is put into every text a run directory can
// hold.
#pragma once
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/metrics_file.h"

namespace ropd::test {

struct FakeRun {
  std::string name;
  std::vector<double> accuracy;  // [5] at 64, 128, 256, 384, 512
  double length = 60;
  double kl = 0.1;
  double shift = 2.5;        // how far the prefixes' likelihood fell
  uint64_t iterations = 15;  // 0 = a reference without training
  uint64_t current = 15;     // iterations that sample; replay afterwards
  uint64_t tau = 0;          // 0 = none
  uint64_t seed = 1;
  std::string hostile;
};

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

inline double wave(uint64_t seed, uint64_t k) {
  return std::sin(static_cast<double>(seed * 37 + k * 11 + k * k));
}

inline void write_fake_metrics(const std::filesystem::path& directory, const FakeRun& run) {
  std::string lines;  // written at once: tests need no durability
  for (uint64_t k = 1; k <= run.iterations; ++k) {
    IterationRecord record;
    record.iteration = k;
    record.step = 4 * k;
    const bool is_current = k <= run.current;
    record.stage = is_current ? 0 : 1;
    record.source = is_current ? "current" : "initial";
    const auto progress = static_cast<double>(std::min(k, run.current)) / 15.0;
    if (is_current && k >= 2) {
      record.trigger.noise = 0.021 * (1 + 0.2 * wave(run.seed, k + 50)) * (1 - 0.4 * progress);
      record.trigger.ratio = 1.02 + 0.22 * wave(run.seed, k);
      record.trigger.distance = *record.trigger.ratio * *record.trigger.noise;
      record.trigger.qualifies = *record.trigger.ratio <= 1;
    }
    if (run.tau && k >= run.tau) record.trigger.tau = run.tau;
    record.responses = 480;
    record.response_tokens = is_current ? 20000 : 13000;
    if (is_current) record.rollout_tokens_per_second = 20000 / 3.0;
    record.seconds.rollout = is_current ? 3.0 : 0.1;
    record.seconds.score_student = 0.5;
    record.seconds.score_teacher = 1.5;
    record.seconds.update = 4.0;
    record.seconds.total = record.seconds.rollout + 6.5;
    record.loss = 0.3 - 0.01 * static_cast<double>(k);
    record.grad_norm = 0.5 - 0.02 * static_cast<double>(k);
    record.distillation.student_mass = 0.98;
    record.distillation.teacher_mass = 0.9 + 0.005 * static_cast<double>(k);
    record.distillation.entropy = 0.6;
    record.response_length_mean = is_current ? 27 + 38 * progress + wave(run.seed, k) : 27.2;
    record.truncated = is_current ? 0.001 + 0.012 * progress * progress : 0.0;
    record.distillation.kl_candidates =
        (is_current ? 0.34 : 0.36) * std::exp(-1.2 * static_cast<double>(k) / 15) + 0.004 * wave(run.seed, k);
    for (uint32_t minibatch = 0; minibatch < 4; ++minibatch) {
      StepRecord step;
      step.step = 4 * (k - 1) + minibatch + 1;
      step.iteration = k;
      step.minibatch = minibatch;
      step.source = record.source;
      lines += io::metrics_line(step) + "\n";
    }
    if (!run.hostile.empty() && k == 1) record.alarms.push_back(run.hostile);
    lines += io::metrics_line(record) + "\n";
  }
  write_text(directory / "metrics.jsonl", lines);
}

inline std::string fake_config(const FakeRun& run) {
  std::string stages;
  if (run.current > 0)
    stages += "    - {source: current" +
              std::string(run.tau                        ? ", until: trigger"
                          : run.current < run.iterations ? ", iterations: " + std::to_string(run.current)
                                                         : "") +
              "}\n";
  if (run.current < run.iterations) stages += "    - {source: initial}\n";
  return "student: lab/models/student" + std::string(run.hostile.empty() ? "" : "  # " + run.hostile) +
         "\nteacher: lab/models/teacher\noutput: lab/runs/" + std::string(run.tau ? "ropd" : "other") +
         "\nseed: " + std::to_string(run.seed) +
         "\ndata:\n  queries: lab/data/queries.jsonl\n  order_seed: " + std::to_string(run.seed) +
         "\n  prompt_suffix: \"\"\nrollout:\n  max_response_tokens: 256\n  temperature: 1.0\n  top_p: 1.0\n  "
         "precision: f32\n"
         "train:\n  iterations: 15\n  responses_per_iteration: 480\n  minibatch: 128\n  learning_rate: "
         "7e-05\n  betas: [0.9, 0.999]\n"
         "  weight_decay: 0.01\n  grad_clip: 1.0\n  precision: f32\nobjective:\n  top_k: 16\n  clip: 0.2\n  "
         "dual_clip: 3.0\n"
         "curriculum:\n  bank: {responses: 2400}\n  stages:\n" +
         stages + "trigger: {persistence: 2}\n";
}

inline void write_fake_evaluation(const std::filesystem::path& directory, const FakeRun& run) {
  const int budgets[] = {64, 128, 256, 384, 512};
  constexpr size_t kQuestions = 20;
  Json summary = {{"format", 1},
                  {"suite", "digits" + run.hostile},
                  {"suite_fingerprint", "0123"},
                  {"about", {{"temperature", 1.0}, {"max_tokens", 512}, {"grader", "reference"}}},
                  {"budgets", Json::array()},
                  {"benchmarks", Json::array()}};
  for (const int budget : budgets) summary["budgets"].push_back({{"budget", budget}});
  for (int level = 0; level < 4; ++level) {
    const std::string name = "digits-" + std::string(level == 3 ? "12" : "0" + std::to_string(3 * level + 3));
    std::vector<std::string> ids;
    for (size_t q = 0; q < kQuestions; ++q) ids.push_back(name + "-" + std::to_string(100 + q));
    Json lines = Json::array();
    for (size_t i = 0; i < 5; ++i) {
      const double length =
          std::min(run.length * (0.75 + 0.07 * static_cast<double>(i)), static_cast<double>(budgets[i]));
      const double at_cap = std::min(0.8, run.length / 2.2 / budgets[i]), lost = at_cap * 0.9;
      const double mean = run.accuracy[i] / 100 * (1.15 - 0.1 * level);
      // Questions differ around the mean, and the more so with the seed; the mean itself is exact.
      std::vector<double> accuracy;
      for (size_t q = 0; q < kQuestions; q += 2) {
        const double apart = 0.05 + 0.04 * wave(run.seed + 100, q + 7 * i);
        accuracy.push_back(mean + apart);
        accuracy.push_back(mean - apart);
      }
      const auto same = [](double value) { return std::vector<double>(kQuestions, value); };
      lines.push_back(
          {{"budget", budgets[i]},
           {"pass_at_k", {{{"k", 1}, {"value", mean}}, {{"k", 4}, {"value", std::min(1.0, mean + 0.2)}}}},
           {"accuracy_by_length",
            {{{"begin", 0}, {"end", 512}, {"responses", 70}, {"accuracy", mean}},
             {{"begin", 512}, {"end", 1024}, {"responses", 10}, {"accuracy", mean / 2}}}},
           {"questions",
            {{"accuracy", accuracy},
             {"majority", same(mean > 0.5 ? 1.0 : 0.0)},
             {"extraction", same(1 - lost)},
             {"length", same(length)},
             {"at_cap", same(at_cap)},
             {"extracted_at_cap", same(at_cap - lost)},
             {"responses", std::vector<int>(kQuestions, 4)}}}});
    }
    summary["benchmarks"].push_back({{"name", name + run.hostile},
                                     {"samples", 4},
                                     {"questions_sha256", "45" + std::to_string(level)},
                                     {"question_ids", ids},
                                     {"budgets", lines}});
  }
  write_text(directory / "summary.json", summary.dump(1));
  std::string lines;
  for (int q = 0; q < 16; ++q) {
    const bool is_long = run.length > 40;
    const std::string text = is_long ? "=2e=4;a=5;c=3;a=4;d=2;d=6;#6~=2e=4;a=5;c=3;a=4;d=2;d=6;#6\\boxed{6}"
                             : q % 2 ? "=2eac>3add>6#6\\boxed{6}"
                                     : "=2eac>1add>8#8\\boxed{8}";
    const Json line = {{"benchmark", "digits-06"},
                       {"query_id", "digits-06-" + std::to_string(100 + q) + run.hostile},
                       {"sample", 0},
                       {"answer", "6"},
                       {"text", text + run.hostile},
                       {"response_ids", std::vector<int>(is_long ? 61 : 18, 1)},
                       {"finish", q == 15 ? "length" : "eos"}};
    lines += line.dump() + "\n";
  }
  write_text(directory / "responses.jsonl", lines);
}

// As `ropd diagnose` leaves it.
inline void write_fake_diagnosis(const std::filesystem::path& directory, const std::string& hostile = "") {
  const std::string first = "theta0" + hostile, second = "R20" + hostile;
  const Json document = {
      {"students", {first, second}},
      {"sources", {first, second}},
      {"positions", 32},
      {"seed", 1},
      {"kl", {{0.43, 0.35}, {0.14, 0.12}}},
      {"fit_and_shift",
       {{{"from", first}, {"to", second}, {"change", 0.31}, {"fit", 0.29}, {"shift", 0.02}}}},
      {"concentration",
       {{{"source", first},
         {"rank_by", "R40"},
         {"first", first},
         {"second", second},
         {"top_tenth", {2.5, 0.9}},
         {"rest", {0.2, 0.06}},
         {"top_share_of_difference", 0.55},
         {"positions_first_lower", 0.3},
         {"responses_first_lower", 0.1}}}},
      {"likelihood",
       {{{"source", first},
         {"from", first},
         {"to", second},
         {"less_likely", 0.85},
         {"cumulative", {{-3.0, 0.2}, {-1.0, 0.6}, {0.5, 1.0}}}}}},
      {"probes",
       {{{"student", second},
         {"norms", {{{"source", first}, {"minibatches", 16}, {"mean", 0.4}, {"deviation", 0.05}}}},
         {"cosines",
          {{{"first", first},
            {"second", second},
            {"pairs", 16},
            {"mean", 0.42},
            {"standard_error", 0.03}}}}}}}};
  write_text(directory / "diagnosis.json", document.dump());
}

inline void write_fake_run(const std::filesystem::path& directory, const FakeRun& run) {
  std::filesystem::create_directories(directory);
  if (run.iterations > 0) {
    write_fake_metrics(directory, run);
    write_text(directory / "config.yaml", fake_config(run));
    write_text(directory / "environment.json", Json{{"git_revision", "0123abcd" + run.hostile},
                                                    {"threads", 2},
                                                    {"compiler", "g++ 12.2.0"},
                                                    {"machine", {{"cpu", "AMD EPYC"}, {"cores", 2}}}}
                                                   .dump(1));
  }
  write_fake_evaluation(directory / "eval" / "final", run);
  Json cumulative = Json::array();
  for (int i = 0; i <= 60; ++i) {
    const double share = i / 60.0;
    cumulative.push_back({-run.shift * 2.2 * (1 - std::pow(share, 0.6)) + 0.4 * share, share});
  }
  if (run.kl > 0)
    write_text(directory / "diagnostics.json",
               Json{{"initial_prefixes",
                     {{"kl", run.kl},
                      {"less_likely", 0.97},
                      {"cumulative", run.iterations ? cumulative : Json::array()}}}}
                   .dump());
}

// The rows of the laboratory: two references and four methods.
inline std::vector<FakeRun> fake_laboratory() {
  return {{.name = "initial student",
           .accuracy = {28.1, 30.2, 30.3, 30.3, 30.3},
           .length = 27,
           .kl = 0.375,
           .shift = 0,
           .iterations = 0,
           .hostile = {}},
          {.name = "teacher",
           .accuracy = {52.8, 80.6, 85.5, 86.2, 86.1},
           .length = 73,
           .kl = 0,
           .iterations = 0,
           .hostile = {}},
          {.name = "current",
           .accuracy = {46.1, 62.7, 65.8, 66.1, 66.1},
           .length = 64,
           .kl = 0.162,
           .shift = 2.7,
           .hostile = {}},
          {.name = "initial only",
           .accuracy = {42.0, 62.3, 70.2, 70.6, 70.7},
           .length = 102,
           .kl = 0.094,
           .shift = 5.5,
           .current = 0,
           .hostile = {}},
          {.name = "fixed 10+5",
           .accuracy = {46.8, 66.3, 72.0, 72.6, 72.6},
           .length = 80,
           .kl = 0.114,
           .shift = 4.4,
           .current = 10,
           .hostile = {}},
          {.name = "R-OPD",
           .accuracy = {41.4, 61.8, 68.9, 69.6, 69.7},
           .length = 93,
           .kl = 0.109,
           .shift = 5.0,
           .current = 7,
           .tau = 7,
           .hostile = {}}};
}

}  // namespace ropd::test
