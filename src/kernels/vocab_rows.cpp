#include "kernels/vocab_rows.h"

#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vocab_rows.cpp"
#include <hwy/foreach_target.h>

#include "kernels/lanes.h"

#ifndef ROPD_KERNELS_VOCAB_ROWS_TYPES
#define ROPD_KERNELS_VOCAB_ROWS_TYPES
namespace ropd::kernels {
namespace {

struct BlockSums {
  float max = 0, sum = 0, weighted_sum = 0;
};

struct MixSums {
  double student = 0, teacher = 0;  // KL(student || mix), KL(teacher || mix)
};

// Two rows of logits with their log-sum-exps.
struct RowPair {
  const float* student = nullptr;
  const float* teacher = nullptr;
  int64_t count = 0;
  float student_lse = 0, teacher_lse = 0;
};

}  // namespace
}  // namespace ropd::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

[[gnu::flatten]] BlockSums block_sums(const float* x, int64_t count, bool with_entropy) {
  Lanes maxima = broadcast(kMinusInfinity);
  for_lanes(count, [&](int64_t i, int64_t n) { maxima = max(maxima, load(x + i, n, kMinusInfinity)); });
  BlockSums result;
  result.max = maximum(maxima);
  // A block of nothing but -inf has the sum 0; NaN must still reach the sum.
  const Lanes center = broadcast(result.max == kMinusInfinity ? 0.0f : result.max);
  Lanes sums = broadcast(0.0f), weighted = broadcast(0.0f);
  if (with_entropy) {
    for_lanes(count, [&](int64_t i, int64_t n) {
      const Lanes difference = load(x + i, n, kMinusInfinity) - center;
      const Lanes e = exp(difference);
      sums = sums + e;
      // exp is 0 below this bound, and 0 * -inf must not become NaN.
      weighted = fma(e, max(difference, broadcast(-200.0f)), weighted);
    });
  } else {
    for_lanes(count,
              [&](int64_t i, int64_t n) { sums = sums + exp(load(x + i, n, kMinusInfinity) - center); });
  }
  result.sum = sum(sums);
  result.weighted_sum = sum(weighted);
  return result;
}

// The first index from begin on whose value is greater; count if there is none.
[[gnu::flatten]] int64_t find_greater(const float* x, int64_t begin, int64_t count, float threshold) {
  const Lanes thresholds = broadcast(threshold);
  int64_t i = begin;
  while (i + kLanes <= count && !any_greater(load(x + i), thresholds)) i += kLanes;
  while (i < count && !(x[i] > threshold)) ++i;
  return i;
}

[[gnu::flatten]] void divide_values(float* x, int64_t count, float divisor) {
  for_lanes(count, [=](int64_t i, int64_t n) { store(load(x + i, n) / broadcast(divisor), x + i, n); });
}

// y = factor * exp(x - log_sum_exp)
[[gnu::flatten]] void scaled_probabilities(float* y, const float* x, int64_t count, float log_sum_exp,
                                           float factor) {
  const Lanes center = broadcast(log_sum_exp), factors = broadcast(factor);
  for_lanes(count, [=](int64_t i, int64_t n) { store(exp(load(x + i, n) - center) * factors, y + i, n); });
}

// sum p (log p - log q) of the first row's probabilities, in sixteen double lanes. Terms with p = 0 are 0.
[[gnu::flatten]] double kl_value(const RowPair& rows) {
  double totals[kLanes] = {};
  const Lanes student_lse = broadcast(rows.student_lse), teacher_lse = broadcast(rows.teacher_lse);
  for_lanes(rows.count, [&](int64_t i, int64_t n) {
    alignas(64) float p[kLanes], difference[kLanes];
    const Lanes student = load(rows.student + i, n, kMinusInfinity) - student_lse;
    store(exp(student), p);
    store(student - (load(rows.teacher + i, n, kMinusInfinity) - teacher_lse), difference);
    for (int64_t j = 0; j < kLanes; ++j)
      totals[j] += p[j] == 0.0f ? 0.0 : static_cast<double>(p[j]) * static_cast<double>(difference[j]);
  });
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) totals[j] += totals[j + half];
  return totals[0];
}

// student = weight * p (log p - log q - kl)
[[gnu::flatten]] void reverse_kl_grad_values(float* student, const RowPair& rows, float kl, float weight) {
  const Lanes student_lse = broadcast(rows.student_lse), teacher_lse = broadcast(rows.teacher_lse);
  for_lanes(rows.count, [&](int64_t i, int64_t n) {
    alignas(64) float p[kLanes], factor[kLanes];
    const Lanes logprob = load(rows.student + i, n, kMinusInfinity) - student_lse;
    store(exp(logprob), p);
    store(logprob - (load(rows.teacher + i, n, kMinusInfinity) - teacher_lse) - broadcast(kl), factor);
    for (int64_t j = 0; j < kLanes; ++j) factor[j] = p[j] == 0.0f ? 0.0f : weight * p[j] * factor[j];
    store(load(factor), student + i, n);
  });
}

[[gnu::flatten]] void forward_kl_grad_values(float* student, const RowPair& rows, float weight) {
  const Lanes student_lse = broadcast(rows.student_lse), teacher_lse = broadcast(rows.teacher_lse);
  for_lanes(rows.count, [&](int64_t i, int64_t n) {
    const Lanes p = exp(load(rows.student + i, n) - student_lse),
                q = exp(load(rows.teacher + i, n) - teacher_lse);
    store((p - q) * broadcast(weight), student + i, n);
  });
}

// With `grad` set: grad = weight * p (log(p / mix) - student_kl) instead of sums.
[[gnu::flatten]] MixSums mix_values(const RowPair& rows, float beta, float* grad, float student_kl,
                                    float weight) {
  MixSums sums;
  const Lanes student_lse = broadcast(rows.student_lse), teacher_lse = broadcast(rows.teacher_lse);
  for_lanes(rows.count, [&](int64_t i, int64_t n) {
    alignas(64) float p[kLanes], q[kLanes], result[kLanes];
    store(exp(load(rows.student + i, n, kMinusInfinity) - student_lse), p);
    store(exp(load(rows.teacher + i, n, kMinusInfinity) - teacher_lse), q);
    for (int64_t j = 0; j < n; ++j) {
      // 1 + beta (q - p) / p is exactly 1 for equal rows, so that they have the divergence 0.
      const float mix = std::fma(beta, q[j] - p[j], p[j]);
      const float student_log = p[j] == 0.0f ? 0.0f : std::log(p[j] / mix);
      if (grad) {
        result[j] = weight * p[j] * (student_log - student_kl);
      } else {
        sums.student += static_cast<double>(p[j]) * static_cast<double>(student_log);
        if (q[j] != 0.0f)
          sums.teacher += static_cast<double>(q[j]) * static_cast<double>(std::log(q[j] / mix));
      }
    }
    if (grad) std::copy_n(result, n, grad + i);
  });
  return sums;
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cassert>
#include <cmath>

namespace ropd::kernels {

HWY_EXPORT(block_sums);
HWY_EXPORT(find_greater);
HWY_EXPORT(divide_values);
HWY_EXPORT(scaled_probabilities);
HWY_EXPORT(kl_value);
HWY_EXPORT(reverse_kl_grad_values);
HWY_EXPORT(forward_kl_grad_values);
HWY_EXPORT(mix_values);

namespace {

int64_t length(std::span<const float> values) { return static_cast<int64_t>(values.size()); }

RowAccumulator accumulate_row(std::span<const float> logits, bool with_entropy) {
  RowAccumulator accumulator;
  for (int64_t begin = 0; begin < length(logits); begin += kVocabBlock)
    accumulator.add(logits.subspan(static_cast<size_t>(begin),
                                   static_cast<size_t>(std::min(kVocabBlock, length(logits) - begin))),
                    with_entropy);
  return accumulator;
}

RowPair pair_of(std::span<const float> student_logits, std::span<const float> teacher_logits) {
  assert(student_logits.size() == teacher_logits.size());
  return {student_logits.data(), teacher_logits.data(), length(student_logits),
          row_log_sum_exp(student_logits), row_log_sum_exp(teacher_logits)};
}

}  // namespace

void divide_by_temperature(std::span<float> logits, float temperature) {
  if (temperature != 1.0f) HWY_DYNAMIC_DISPATCH(divide_values)(logits.data(), length(logits), temperature);
}

float RowAccumulator::add(std::span<const float> logits, bool with_entropy) {
  assert(length(logits) <= kVocabBlock);
  const BlockSums block = HWY_DYNAMIC_DISPATCH(block_sums)(logits.data(), length(logits), with_entropy);
  if (!with_entropy) has_entropy_ = false;
  if (block.sum == 0.0f) return block.max;  // nothing but -inf
  if (empty_) {
    empty_ = false;
    max_ = block.max;
    sum_ = block.sum;
    weighted_sum_ = block.weighted_sum;
  } else if (block.max > max_) {
    const float factor = exp(max_ - block.max);
    weighted_sum_ = (weighted_sum_ + sum_ * (max_ - block.max)) * factor + block.weighted_sum;
    sum_ = sum_ * factor + block.sum;
    max_ = block.max;
  } else {
    const float factor = exp(block.max - max_);
    weighted_sum_ += (block.weighted_sum + block.sum * (block.max - max_)) * factor;
    sum_ += block.sum * factor;
  }
  return block.max;
}

RowStatistics RowAccumulator::result() const {
  if (empty_) return {-std::numeric_limits<float>::infinity(), 0.0f};
  const float log_sum = log(sum_);
  return {max_ + log_sum, has_entropy_ ? log_sum - weighted_sum_ / sum_ : 0.0f};
}

float row_log_sum_exp(std::span<const float> logits) {
  return accumulate_row(logits, false).result().log_sum_exp;
}

RowStatistics row_statistics(std::span<const float> logits) { return accumulate_row(logits, true).result(); }

TopEntries::TopEntries(std::span<float> values, std::span<int32_t> ids) : values_(values), ids_(ids) {
  assert(values.size() == ids.size());
}

void TopEntries::insert(float value, int32_t id) {
  int64_t at = count_ < static_cast<int64_t>(values_.size()) ? count_++ : count_ - 1;
  for (; at > 0 && value > values_[static_cast<size_t>(at - 1)]; --at) {
    values_[static_cast<size_t>(at)] = values_[static_cast<size_t>(at - 1)];
    ids_[static_cast<size_t>(at)] = ids_[static_cast<size_t>(at - 1)];
  }
  values_[static_cast<size_t>(at)] = value;
  ids_[static_cast<size_t>(at)] = id;
}

void TopEntries::add(std::span<const float> logits, int32_t first_id, float block_max) {
  const int64_t wanted = static_cast<int64_t>(values_.size()), count = length(logits);
  if (wanted == 0) return;
  int64_t i = 0;
  for (; count_ < wanted && i < count; ++i)
    insert(logits[static_cast<size_t>(i)], first_id + static_cast<int32_t>(i));
  if (count_ < wanted || !(block_max > values_.back())) return;
  // An entry that only equals the last one kept has a higher id and stays out.
  const auto function = HWY_DYNAMIC_DISPATCH(find_greater);
  while ((i = function(logits.data(), i, count, values_.back())) < count) {
    insert(logits[static_cast<size_t>(i)], first_id + static_cast<int32_t>(i));
    ++i;
  }
}

RowStatistics score_row(std::span<const float> logits, std::span<float> top_logprobs,
                        std::span<int32_t> top_ids) {
  RowAccumulator accumulator;
  TopEntries top(top_logprobs, top_ids);
  for (size_t begin = 0; begin < logits.size(); begin += kVocabBlock) {
    const auto block = logits.subspan(begin, std::min<size_t>(kVocabBlock, logits.size() - begin));
    const float block_max = accumulator.add(block, /*with_entropy=*/true);
    top.add(block, static_cast<int32_t>(begin), block_max);
  }
  const RowStatistics statistics = accumulator.result();
  for (float& value : top_logprobs) value -= statistics.log_sum_exp;
  return statistics;
}

void row_probabilities(std::span<float> y, std::span<const float> logits, float log_sum_exp) {
  HWY_DYNAMIC_DISPATCH(scaled_probabilities)(y.data(), logits.data(), length(logits), log_sum_exp, 1.0f);
}

void candidate_gradient(std::span<float> logits, std::span<const int32_t> ids,
                        std::span<const float> coefficients, float weight, float log_sum_exp) {
  float total = 0;
  for (float coefficient : coefficients) total += coefficient;
  HWY_DYNAMIC_DISPATCH(scaled_probabilities)
  (logits.data(), logits.data(), length(logits), log_sum_exp, -weight * total);
  for (size_t j = 0; j < ids.size(); ++j) {
    assert(ids[j] >= 0 && ids[j] < length(logits));
    logits[static_cast<size_t>(ids[j])] += weight * coefficients[j];
  }
}

float cross_entropy_gradient(std::span<float> logits, int32_t target, float weight) {
  const float log_sum_exp = row_log_sum_exp(logits), loss = log_sum_exp - logits[static_cast<size_t>(target)];
  const float coefficient = -1.0f;
  candidate_gradient(logits, {&target, 1}, {&coefficient, 1}, weight, log_sum_exp);
  return loss;
}

double reverse_kl(std::span<const float> student_logits, std::span<const float> teacher_logits) {
  return HWY_DYNAMIC_DISPATCH(kl_value)(pair_of(student_logits, teacher_logits));
}

double forward_kl(std::span<const float> student_logits, std::span<const float> teacher_logits) {
  return reverse_kl(teacher_logits, student_logits);
}

double reverse_kl_gradient(std::span<float> student_logits, std::span<const float> teacher_logits,
                           float weight) {
  const RowPair rows = pair_of(student_logits, teacher_logits);
  const double kl = HWY_DYNAMIC_DISPATCH(kl_value)(rows);
  HWY_DYNAMIC_DISPATCH(reverse_kl_grad_values)(student_logits.data(), rows, static_cast<float>(kl), weight);
  return kl;
}

double forward_kl_gradient(std::span<float> student_logits, std::span<const float> teacher_logits,
                           float weight) {
  const double kl = forward_kl(student_logits, teacher_logits);
  HWY_DYNAMIC_DISPATCH(forward_kl_grad_values)
  (student_logits.data(), pair_of(student_logits, teacher_logits), weight);
  return kl;
}

double jensen_shannon(std::span<const float> student_logits, std::span<const float> teacher_logits,
                      float beta) {
  const MixSums sums =
      HWY_DYNAMIC_DISPATCH(mix_values)(pair_of(student_logits, teacher_logits), beta, nullptr, 0.0f, 0.0f);
  return (1.0 - beta) * sums.student + beta * sums.teacher;
}

// The derivative at the student's probabilities is (1 - beta) log(p / mix): the terms of mix itself cancel.
double jensen_shannon_gradient(std::span<float> student_logits, std::span<const float> teacher_logits,
                               float beta, float weight) {
  const RowPair rows = pair_of(student_logits, teacher_logits);
  const auto function = HWY_DYNAMIC_DISPATCH(mix_values);
  const MixSums sums = function(rows, beta, nullptr, 0.0f, 0.0f);
  function(rows, beta, student_logits.data(), static_cast<float>(sums.student), weight * (1.0f - beta));
  return (1.0 - beta) * sums.student + beta * sums.teacher;
}

}  // namespace ropd::kernels
#endif
