// Speed of re-scoring saved responses at five budgets, with synthetic responses of 32K tokens (Qwen3
// tokenizer of the shared data).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "eval/outcomes.h"
#include "eval/suite.h"
#include "stats/bootstrap.h"

namespace {

using namespace ropd;

// Run from the project folder, or set ROPD_TEST_DATA.
Path data_directory() {
  const char* path = std::getenv("ROPD_TEST_DATA");
  return path ? path : "../shared/data";
}

// Text like a response: benchmark questions in random order with numbers between them, a boxed answer now and
// then.
std::string synthetic_response(const eval::Suite& suite, const text::Tokenizer& tokenizer, uint32_t sample,
                               size_t num_tokens) {
  std::string text;
  uint32_t step = 0;
  for (size_t tokens = 0; tokens < num_tokens; ++step) {
    const auto bits = random_bits(11, Purpose::test, {.key = 1, .row = sample, .column = step});
    const auto& benchmark = suite.benchmarks[bits[0] % suite.benchmarks.size()];
    std::string part = "\n\nStep " + std::to_string(step) + ": " +
                       benchmark.questions[bits[1] % benchmark.questions.size()].messages[0].content + " = " +
                       std::to_string(bits[2]) + ".";
    if (bits[3] % 50 == 0) part += " So \\boxed{" + std::to_string(bits[2] % 20) + "}.";
    tokens += tokenizer.encode(part).size();
    text += part;
  }
  return text + " \\boxed{" + std::to_string(sample % 7) + "}";
}

void score_32k_responses(benchmark::State& state) {
  const auto suite = eval::load_suite("eight", data_directory() / "benchmarks");
  const auto tokenizer = text::Tokenizer::load(data_directory() / "tokenizers/qwen3");
  std::vector<std::string> responses;
  for (uint32_t sample = 0; sample < 16; ++sample)
    responses.push_back(synthetic_response(suite, tokenizer, sample, 32000));
  const eval::GradingConfig config{.budgets = {4096, 8192, 16384, 24576, 32768}};
  size_t bytes = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(eval::grade_question(responses, "3", tokenizer, config));
    for (const auto& response : responses) bytes += response.size();
  }
  state.SetBytesProcessed(int64_t(bytes));
  state.SetItemsProcessed(int64_t(state.iterations()) * int64_t(responses.size()));
}
BENCHMARK(score_32k_responses)->Unit(benchmark::kMillisecond);

// The paper's largest comparison: eight benchmarks, 1,411 questions, 20,000 draws.
void bootstrap_eight(benchmark::State& state) {
  std::vector<stats::BenchmarkValues> values;
  for (const size_t count : {30, 30, 30, 83, 30, 33, 500, 675}) {
    values.push_back({"benchmark " + std::to_string(values.size()), std::vector<double>(count)});
    for (size_t q = 0; q < count; ++q)
      values.back().values[q] =
          random_uniform(1, Purpose::test, {.key = values.size(), .row = uint32_t(q)}) - 0.5;
  }
  const std::vector<stats::Contrast> contrasts = {{{.weight = 1, .runs = {values}}}};
  for (auto _ : state) benchmark::DoNotOptimize(stats::bootstrap(contrasts, {.draws = 20000}));
}
BENCHMARK(bootstrap_eight)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
