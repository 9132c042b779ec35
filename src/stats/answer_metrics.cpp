#include "stats/answer_metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>

namespace ropd::stats {

std::span<const NamedMetric> metric_list() {
  static constexpr NamedMetric kList[] = {
      {"accuracy", &AnswerMetrics::accuracy},
      {"pass_at_n", &AnswerMetrics::pass_at_n},
      {"majority", &AnswerMetrics::majority},
      {"extraction", &AnswerMetrics::extraction},
      {"mean_tokens", &AnswerMetrics::mean_tokens},
      {"at_cap", &AnswerMetrics::at_cap},
      {"extracted_finished", &AnswerMetrics::extracted_finished},
      {"extracted_at_cap", &AnswerMetrics::extracted_at_cap},
      {"missing_finished", &AnswerMetrics::missing_finished},
      {"missing_at_cap", &AnswerMetrics::missing_at_cap},
  };
  return kList;
}

double question_accuracy(const QuestionOutcomes& question) {
  assert(!question.empty());
  const auto num_correct =
      std::count_if(question.begin(), question.end(), [](const Outcome& o) { return o.is_correct; });
  return double(num_correct) / double(question.size());
}

bool majority_is_correct(const QuestionOutcomes& question) {
  struct Votes {
    size_t count = 0;
    size_t first = 0;  // response that said it first
  };
  std::map<uint32_t, Votes> votes;
  for (size_t i = 0; i < question.size(); ++i) {
    if (!question[i].is_extracted) continue;
    auto& [count, first] = votes[question[i].answer];
    if (count++ == 0) first = i;
  }
  if (votes.empty()) return false;
  const auto winner = std::max_element(votes.begin(), votes.end(), [](const auto& left, const auto& right) {
    return left.second.count != right.second.count ? left.second.count < right.second.count
                                                   : left.second.first > right.second.first;
  });
  return question[winner->second.first].is_correct;
}

double unbiased_pass_at_k(uint32_t num_samples, uint32_t num_correct, uint32_t k) {
  assert(k >= 1 && k <= num_samples && num_correct <= num_samples);
  if (num_samples - num_correct < k) return 1.0;
  // C(n - c, k) / C(n, k) = prod over i in (n - c, n] of (1 - k / i)
  double all_wrong = 1.0;
  for (uint32_t i = num_samples - num_correct + 1; i <= num_samples; ++i)
    all_wrong *= 1.0 - double(k) / double(i);
  return 1.0 - all_wrong;
}

AnswerMetrics benchmark_metrics(std::span<const QuestionOutcomes> questions) {
  AnswerMetrics metrics;
  // Every rate but pass@n and majority is a mean over questions of the question's mean over responses, like
  // accuracy.
  for (const auto& question : questions) {
    const double weight = 1.0 / (double(questions.size()) * double(question.size()));
    bool any_correct = false;
    for (const Outcome& outcome : question) {
      any_correct |= outcome.is_correct;
      metrics.accuracy += outcome.is_correct ? weight : 0;
      metrics.extraction += outcome.is_extracted ? weight : 0;
      metrics.at_cap += outcome.is_at_cap ? weight : 0;
      metrics.mean_tokens += weight * outcome.num_tokens;
      auto& category = outcome.is_extracted
                           ? (outcome.is_at_cap ? metrics.extracted_at_cap : metrics.extracted_finished)
                           : (outcome.is_at_cap ? metrics.missing_at_cap : metrics.missing_finished);
      category += weight;
    }
    metrics.pass_at_n += any_correct;
    metrics.majority += majority_is_correct(question);
  }
  metrics.pass_at_n /= double(questions.size());
  metrics.majority /= double(questions.size());
  // Accuracy without the rounding of many small additions: it is compared across evaluations.
  double accuracy = 0;
  for (const auto& question : questions) accuracy += question_accuracy(question);
  metrics.accuracy = accuracy / double(questions.size());
  return metrics;
}

std::vector<PassAtK> pass_at_k_curve(std::span<const QuestionOutcomes> questions) {
  uint32_t smallest = std::numeric_limits<uint32_t>::max();
  for (const auto& question : questions) smallest = std::min(smallest, uint32_t(question.size()));
  std::vector<PassAtK> curve;
  for (uint32_t k = 1; !questions.empty(); k = std::min(2 * k, smallest)) {
    double sum = 0;
    for (const auto& question : questions) {
      const auto num_correct =
          std::count_if(question.begin(), question.end(), [](const Outcome& o) { return o.is_correct; });
      sum += unbiased_pass_at_k(uint32_t(question.size()), uint32_t(num_correct), k);
    }
    curve.push_back({k, sum / double(questions.size())});
    if (k == smallest) break;
  }
  return curve;
}

AnswerMetrics mean_over_benchmarks(std::span<const AnswerMetrics> benchmarks) {
  AnswerMetrics mean;
  for (const auto& [name, member] : metric_list()) {
    for (const AnswerMetrics& benchmark : benchmarks) mean.*member += benchmark.*member;
    mean.*member /= double(std::max<size_t>(1, benchmarks.size()));
  }
  return mean;
}

std::vector<LengthBin> accuracy_by_length(std::span<const QuestionOutcomes> questions) {
  struct Count {
    uint64_t responses = 0, correct = 0;
  };
  std::map<uint32_t, Count> bins;  // by index: 0 = [0, 512), i = [512 << (i - 1), 512 << i)
  for (const auto& question : questions)
    for (const Outcome& outcome : question) {
      uint32_t bin = 0;
      while (bin < 22 && outcome.num_tokens >= (uint32_t{512} << bin)) ++bin;
      ++bins[bin].responses;
      bins[bin].correct += outcome.is_correct;
    }
  std::vector<LengthBin> curve;
  for (const auto& [bin, count] : bins)
    curve.push_back({bin == 0 ? 0 : uint32_t{512} << (bin - 1), uint32_t{512} << bin, count.responses,
                     double(count.correct) / double(count.responses)});
  return curve;
}

MeanDeviation mean_and_deviation(std::span<const double> values) {
  MeanDeviation result{.count = values.size()};
  if (values.empty()) return result;
  for (const double value : values) result.mean += value;
  result.mean /= double(values.size());
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / double(values.size() - 1));
  return result;
}

}  // namespace ropd::stats
