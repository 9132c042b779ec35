#include "kernels/vocab_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/threads.h"
#include "kernels/vocab_rows.h"
#include "support/gradient_check.h"

namespace ropd::kernels {
namespace {

using ropd::test::gradient_check;
using ropd::test::random_values;

struct Head {
  int64_t vocabulary, width, rows;
  std::vector<float> weight, hidden;
  Head(int64_t v, int64_t d, int64_t r, uint32_t seed, float scale = 1.0f)
      : vocabulary(v),
        width(d),
        rows(r),
        weight(random_values(static_cast<size_t>(v * d), seed, scale)),
        hidden(random_values(static_cast<size_t>(r * d), seed + 1)) {}
  WeightView view() const { return {weight.data(), DType::f32, vocabulary, width}; }
  std::vector<float> logits() const {
    std::vector<float> result(static_cast<size_t>(rows * vocabulary));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vocabulary; ++v) {
        float chain = 0;
        for (int64_t d = 0; d < width; ++d)
          chain = std::fma(hidden[static_cast<size_t>(r * width + d)],
                           weight[static_cast<size_t>(v * width + d)], chain);
        result[static_cast<size_t>(r * vocabulary + v)] = chain;
      }
    return result;
  }
};

TEST(ScoreVocabulary, EqualsRowByRowScoresOfTheWholeLogits) {
  for (const auto& [vocabulary, rows] :
       {std::pair<int64_t, int64_t>{40, 3}, {2048, 2}, {5003, 5}, {300, 600}}) {
    const Head head(vocabulary, 5, rows, 1);
    std::vector<int64_t> begins = {0};
    std::vector<int32_t> ids;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < r % 3; ++j) ids.push_back(static_cast<int32_t>((r * 31 + j * 17) % vocabulary));
      begins.push_back(static_cast<int64_t>(ids.size()));
    }
    const float temperature = 0.75f;
    const ScoreRequest request{temperature, 16, true, begins, ids};
    const auto scores = score_vocabulary(head.hidden, head.view(), Precision::f32, request);
    auto logits = head.logits();
    for (int64_t r = 0; r < rows; ++r) {
      const auto row =
          std::span(logits).subspan(static_cast<size_t>(r * vocabulary), static_cast<size_t>(vocabulary));
      divide_by_temperature(row, temperature);
      const RowStatistics expected = row_statistics(row);
      ASSERT_EQ(scores.log_sum_exp[static_cast<size_t>(r)], expected.log_sum_exp);
      ASSERT_EQ(scores.entropy[static_cast<size_t>(r)], expected.entropy);
      std::vector<int32_t> order(static_cast<size_t>(vocabulary));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return row[a] > row[b]; });
      for (int64_t j = 0; j < 16; ++j) {
        const size_t at = static_cast<size_t>(r * 16 + j);
        ASSERT_EQ(scores.top_ids[at], order[static_cast<size_t>(j)]);
        ASSERT_EQ(scores.top_logprobs[at], row[order[static_cast<size_t>(j)]] - expected.log_sum_exp);
      }
      for (int64_t i = begins[static_cast<size_t>(r)]; i < begins[static_cast<size_t>(r + 1)]; ++i)
        ASSERT_EQ(scores.given_logprobs[static_cast<size_t>(i)],
                  row[ids[static_cast<size_t>(i)]] - expected.log_sum_exp);
    }
  }
}

TEST(ScoreVocabulary, PackedHeadBatchAndThreadsDoNotShow) {
  const Head head(4500, 24, 37, 2);
  const ScoreRequest request{1.0f, 4, true, {}, {}};
  const size_t threads = num_threads();
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    const auto all = score_vocabulary(head.hidden, head.view(), precision, request);
    const auto packed = score_vocabulary(head.hidden, PackedWeight::pack(head.view(), precision), request);
    EXPECT_EQ(all.log_sum_exp, packed.log_sum_exp);
    EXPECT_EQ(all.top_ids, packed.top_ids);
    EXPECT_EQ(all.top_logprobs, packed.top_logprobs);
    EXPECT_EQ(all.entropy, packed.entropy);
    set_num_threads(3);
    const auto three = score_vocabulary(head.hidden, head.view(), precision, request);
    set_num_threads(threads);
    EXPECT_EQ(all.log_sum_exp, three.log_sum_exp);
    EXPECT_EQ(all.top_logprobs, three.top_logprobs);
    for (size_t r : {size_t{0}, size_t{36}}) {
      const auto one =
          score_vocabulary(std::span(head.hidden).subspan(r * 24, 24), head.view(), precision, request);
      EXPECT_EQ(one.log_sum_exp[0], all.log_sum_exp[r]);
      EXPECT_EQ(one.entropy[0], all.entropy[r]);
    }
  }
}

TEST(ScoreVocabulary, TopOneAndNothingAskedFor) {
  const Head head(50, 4, 2, 3);
  const auto one = score_vocabulary(head.hidden, head.view(), Precision::f32, {1.0f, 1, false, {}, {}});
  EXPECT_EQ(one.top_ids.size(), 2u);
  const auto none = score_vocabulary(head.hidden, head.view(), Precision::f32, {});
  EXPECT_EQ(none.log_sum_exp, one.log_sum_exp);
  EXPECT_TRUE(none.top_ids.empty() && none.entropy.empty() && none.given_logprobs.empty());
  EXPECT_TRUE(score_vocabulary({}, head.view(), Precision::f32, {}).log_sum_exp.empty());
}

TEST(ScoreVocabulary, ReadsBf16Weights) {
  const Head head(100, 8, 3, 4);
  std::vector<Bf16> stored;
  std::vector<float> rounded;
  for (float value : head.weight) {
    stored.push_back(float_to_bf16(value));
    rounded.push_back(bf16_to_float(stored.back()));
  }
  const ScoreRequest request{1.0f, 2, false, {}, {}};
  const auto expected =
      score_vocabulary(head.hidden, {rounded.data(), DType::f32, 100, 8}, Precision::f32, request);
  const auto scores =
      score_vocabulary(head.hidden, {stored.data(), DType::bf16, 100, 8}, Precision::f32, request);
  EXPECT_EQ(scores.log_sum_exp, expected.log_sum_exp);
}

double cross_entropy(const Head& head, const std::vector<int32_t>& targets) {
  double total = 0;
  for (int64_t r = 0; r < head.rows; ++r) {
    double sum = 0, at_target = 0;
    for (int64_t v = 0; v < head.vocabulary; ++v) {
      double logit = 0;
      for (int64_t d = 0; d < head.width; ++d)
        logit += static_cast<double>(head.hidden[static_cast<size_t>(r * head.width + d)]) *
                 head.weight[static_cast<size_t>(v * head.width + d)];
      sum += std::exp(logit);
      if (v == targets[static_cast<size_t>(r)]) at_target = logit;
    }
    total += 0.5 * (std::log(sum) - at_target);
  }
  return total;
}

TEST(VocabHeadGrad, AgreesWithCentralDifferences) {
  Head head(33, 6, 7, 5);
  const std::vector<int32_t> targets = {0, 32, 5, 5, 7, 20, 1};
  std::vector<float> grad_hidden(head.hidden.size()), grad_weight(head.weight.size());
  vocab_head_grad(grad_hidden, grad_weight, head.hidden, head.view(), Precision::f32, {}, 3 * 33 * 4,
                  [&](int64_t row, std::span<float> logits) {
                    cross_entropy_gradient(logits, targets[static_cast<size_t>(row)], 0.5f);
                  });
  const auto loss = [&] { return cross_entropy(head, targets); };
  gradient_check("hidden", head.hidden, grad_hidden, loss, 1e-5, 1e-3f);
  gradient_check("weight", head.weight, grad_weight, loss, 1e-5, 1e-3f);
}

TEST(VocabHeadGrad, ChunksMicrobatchesAndThreadsDoNotShow) {
  constexpr int64_t kRows = 171, kSplit = 75;
  const std::vector<int64_t> begins = {0, 40, 75, 75, 76, 171};
  const Head head(700, 20, kRows, 6);
  const auto objective_from = [&](int64_t first) {
    return [&, first](int64_t row, std::span<float> logits) {
      cross_entropy_gradient(logits, static_cast<int32_t>((first + row) * 13 % 700), 0.1f);
    };
  };
  const auto run = [&](Precision precision, size_t scratch, int64_t split, int threads) {
    const size_t before = num_threads();
    set_num_threads(threads);
    std::vector<float> grad_hidden(head.hidden.size(), 0.5f), grad_weight(head.weight.size(), 0.25f);
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, split}, {split, kRows}}) {
      const size_t at = static_cast<size_t>(begin * 20), size = static_cast<size_t>((end - begin) * 20);
      std::vector<int64_t> here = {0};
      for (const int64_t b : begins)
        if (b > begin && b <= end) here.push_back(b - begin);
      vocab_head_grad(std::span(grad_hidden).subspan(at, size), grad_weight,
                      std::span(head.hidden).subspan(at, size), head.view(), precision, here, scratch,
                      objective_from(begin));
    }
    set_num_threads(before);
    grad_hidden.insert(grad_hidden.end(), grad_weight.begin(), grad_weight.end());
    return grad_hidden;
  };
  for (const auto precision : {Precision::f32, Precision::bf16_tiles}) {
    const auto reference = run(precision, vocab_scratch_bytes(precision), kRows, 1);
    EXPECT_EQ(run(precision, vocab_scratch_bytes(precision), kRows, 3), reference);
    EXPECT_EQ(run(precision, 5 * 700 * 4, kRows, 2), reference);
    EXPECT_EQ(run(precision, 50 * 700 * 4, kRows, 2), reference);
    EXPECT_EQ(run(precision, 1, kRows, 2), reference);
    EXPECT_EQ(run(precision, vocab_scratch_bytes(precision), kSplit, 2), reference);
  }
}

TEST(VocabHeadGrad, EmptyGradientsOnlyShowTheLogits) {
  const Head head(64, 3, 9, 7);
  const auto expected = head.logits();
  std::vector<float> seen(expected.size());
  vocab_head_grad({}, {}, head.hidden, head.view(), Precision::f32, {}, 1024,
                  [&](int64_t row, std::span<float> logits) {
                    std::copy(logits.begin(), logits.end(), seen.begin() + row * 64);
                  });
  EXPECT_EQ(seen, expected);
}

TEST(VocabHeadPairs, ShowsBothModelsTheSameRowAndAddsTheStudentsGradient) {
  Head student(60, 4, 5, 8);
  const Head teacher(60, 7, 5, 9);
  std::vector<float> grad_hidden(student.hidden.size()), grad_weight(student.weight.size());
  std::vector<double> kl(5);
  vocab_head_pairs(grad_hidden, grad_weight, {student.hidden, student.view(), Precision::f32},
                   {teacher.hidden, teacher.view(), Precision::f32}, {}, 2 * 2 * 60 * 4,
                   [&](int64_t row, std::span<float> student_logits, std::span<float> teacher_logits) {
                     kl[static_cast<size_t>(row)] = reverse_kl_gradient(student_logits, teacher_logits, 1.0f);
                   });
  const auto teacher_logits = teacher.logits();
  const auto loss = [&] {
    const auto student_logits = student.logits();
    double total = 0;
    for (size_t r = 0; r < 5; ++r)
      total += reverse_kl(std::span(student_logits).subspan(r * 60, 60),
                          std::span(teacher_logits).subspan(r * 60, 60));
    return total;
  };
  EXPECT_NEAR(std::accumulate(kl.begin(), kl.end(), 0.0), loss(), 1e-9);
  gradient_check("hidden", student.hidden, grad_hidden, loss, 1e-3, 1e-2f);
  gradient_check("weight", student.weight, grad_weight, loss, 1e-3, 1e-2f);
}

TEST(VocabHeadPairs, EqualModelsGiveExactlyZero) {
  const Head model(500, 16, 4, 10);
  std::vector<float> grad_hidden(model.hidden.size());
  const HeadInput input{model.hidden, model.view(), Precision::f32};
  vocab_head_pairs(grad_hidden, {}, input, input, {}, vocab_scratch_bytes(Precision::f32),
                   [&](int64_t, std::span<float> student_logits, std::span<float> teacher_logits) {
                     EXPECT_EQ(reverse_kl_gradient(student_logits, teacher_logits, 1.0f), 0.0);
                   });
  for (float value : grad_hidden) EXPECT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace ropd::kernels
