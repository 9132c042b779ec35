// Answers graded a second on one core: ordinary answers (the kinds that benchmarks hold, written in two
// ways), long responses, and texts made to be slow.
//   build/bench/grader_bench
#include <benchmark/benchmark.h>

#include <array>
#include <string>
#include <utility>

#include "grading/grader.h"

namespace ropd::grading {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 16> kPairs = {
    {{"42", "42"},
     {"\\dfrac{13}{18}", "\\frac{13}{18}"},
     {"70\\sqrt2", "70 \\sqrt{2}"},
     {"x = 0.15", "0.15"},
     {"(3, \\pi/2)", "\\left( 3, \\frac{\\pi}{2} \\right)"},
     {"1,-2", "-2, 1"},
     {"\\text{(C)}", "C"},
     {"120^\\circ", "120"},
     {"(x+1)^2", "x^2+2x+1"},
     {"\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt{2}}{2}"},
     {"[0,1)\\cup(2,3]", "(2,3]\\cup[0,1)"},
     {"2^{10}", "1024"},
     {"41", "42"},
     {"\\frac{3}{7}", "\\frac{3}{8}"},
     {"\\frac{s+1}{s^2+4}", "\\frac{s}{s^2+4}+\\frac{1}{s^2+4}"},
     {"1.618034", "\\frac{1+\\sqrt{5}}{2}"}}};

void grade_ordinary_answers(benchmark::State& state, Mode mode) {
  for (auto _ : state)
    for (const auto& [given, expected] : kPairs) benchmark::DoNotOptimize(equivalent(given, expected, mode));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kPairs.size()));
}
BENCHMARK_CAPTURE(grade_ordinary_answers, reference, Mode::reference);
BENCHMARK_CAPTURE(grade_ordinary_answers, strict, Mode::strict);

// A response of 32K tokens, about 100 KB of text, with the answer at its end.
void grade_long_response(benchmark::State& state) {
  std::string response;
  while (response.size() < 100000) response += "Therefore $x = \\frac{a}{b}$ and we continue with {braces}. ";
  response += "\\boxed{\\frac{13}{18}}";
  for (auto _ : state) benchmark::DoNotOptimize(grade(response, "\\dfrac{13}{18}"));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(response.size()));
}
BENCHMARK(grade_long_response);

void grade_hostile_answer(benchmark::State& state, const std::string& given, const std::string& expected) {
  for (auto _ : state) benchmark::DoNotOptimize(equivalent(given, expected));
}
BENCHMARK_CAPTURE(grade_hostile_answer, power_tower, "5^{5^{5^{5^5}}}", "5^{5^{5^{5^5}}}+0")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(grade_hostile_answer, million_digits, std::string(1000000, '9'), std::string(1000000, '8'))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(grade_hostile_answer, nested_braces,
                  std::string(10000, '{') + "1" + std::string(10000, '}'), "1")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(grade_hostile_answer, nested_parentheses,
                  std::string(4000, '(') + "1" + std::string(4000, ')'), "2")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(grade_hostile_answer, factorial, "99999999!", "1")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ropd::grading

BENCHMARK_MAIN();
