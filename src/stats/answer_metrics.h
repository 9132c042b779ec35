// What the responses to a set of questions say about a model (method.md section 9).
//   accuracy          correct / total per question, mean over questions
//   pass@n            share of questions with at least one correct response
//   pass@k, k < n     mean over questions of 1 - C(n - c, k) / C(n, k): unbiased for a draw of k out of n
//                     (Chen et al. 2021)
//   majority          share of questions whose most frequent extracted answer is correct; ties go to the
//                     answer seen first
//   extraction        share of responses with a boxed answer
//   at cap            share whose length reaches the limit
//   categories        {extracted or not} x {at cap or not}: four shares that add to one
// Benchmarks have equal weight in a mean over benchmarks. Pure functions of records; grading and tokens are
// the caller's.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ropd::stats {

// One graded response.
struct Outcome {
  bool is_correct = false;
  bool is_extracted = false;
  bool is_at_cap = false;
  uint32_t num_tokens = 0;  // retained
  uint32_t answer = 0;  // extracted answers that are the same share a number; counts only when is_extracted
};

// The responses to one question, in sample order.
using QuestionOutcomes = std::vector<Outcome>;

struct AnswerMetrics {
  double accuracy = 0;
  double pass_at_n = 0;
  double majority = 0;
  double extraction = 0;
  double mean_tokens = 0;
  double at_cap = 0;
  double extracted_finished = 0;
  double extracted_at_cap = 0;
  double missing_finished = 0;
  double missing_at_cap = 0;
};

struct PassAtK {
  uint32_t k = 0;
  double value = 0;
};

// Correct / total. The question has at least one response.
double question_accuracy(const QuestionOutcomes& question);
bool majority_is_correct(const QuestionOutcomes& question);
// 1 - C(n - c, k) / C(n, k), without large factorials; 1 <= k <= n, c <= n.
double unbiased_pass_at_k(uint32_t num_samples, uint32_t num_correct, uint32_t k);

// Over the questions of one benchmark; each has at least one response.
AnswerMetrics benchmark_metrics(std::span<const QuestionOutcomes> questions);
// k = 1, 2, 4, ... and n, for n = the smallest number of responses to a question.
std::vector<PassAtK> pass_at_k_curve(std::span<const QuestionOutcomes> questions);
// Equal weights.
AnswerMetrics mean_over_benchmarks(std::span<const AnswerMetrics> benchmarks);

// Accuracy of responses by their length: bins [0, 512), [512, 1024), [1024, 2048), ... doubling; empty bins
// are left out.
struct LengthBin {
  uint32_t begin_tokens = 0;
  uint32_t end_tokens = 0;
  uint64_t num_responses = 0;
  double accuracy = 0;
};
std::vector<LengthBin> accuracy_by_length(std::span<const QuestionOutcomes> questions);

// Mean and sample standard deviation (n - 1) of repeated runs; the deviation of one value is 0.
struct MeanDeviation {
  double mean = 0;
  double deviation = 0;
  size_t count = 0;
};
MeanDeviation mean_and_deviation(std::span<const double> values);

// Names and values of all metrics, in the order of tables and files.
using NamedMetric = std::pair<const char*, double AnswerMetrics::*>;
std::span<const NamedMetric> metric_list();

}  // namespace ropd::stats
