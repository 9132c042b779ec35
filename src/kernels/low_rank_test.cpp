#include "kernels/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/threads.h"
#include "kernels/matmul_test_support.h"
#include "support/gradient_check.h"

namespace ropd::kernels {
namespace {

using test::random_values;

struct Shape {
  int64_t outputs, inputs, rank, tokens;
};
const Shape kShapes[] = {{1, 1, 1, 1},     {7, 5, 3, 4},      {33, 70, 1, 13},
                         {64, 48, 16, 31}, {130, 257, 9, 50}, {103, 192, 17, 7}};

struct Case {
  Shape shape;
  std::vector<float> w, a, b, x, grad_y;
  explicit Case(const Shape& s)
      : shape(s),
        w(random_values(static_cast<size_t>(s.outputs * s.inputs), 1)),
        a(random_values(static_cast<size_t>(s.rank * s.inputs), 2)),
        b(random_values(static_cast<size_t>(s.outputs * s.rank), 3)),
        x(random_values(static_cast<size_t>(s.tokens * s.inputs), 4)),
        grad_y(random_values(static_cast<size_t>(s.tokens * s.outputs), 5)) {}
  LowRank change(float scale) const { return {a.data(), b.data(), shape.rank, scale}; }
  WeightView view() const { return {w.data(), DType::f32, shape.outputs, shape.inputs}; }
};

// The contract of the header, word for word.
std::vector<float> naive_merge(const Case& c, const std::vector<float>& stored, float scale) {
  const auto& [outputs, inputs, rank, tokens] = c.shape;
  std::vector<float> merged(stored.size());
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t k = 0; k < inputs; ++k) {
      float sum = 0;
      for (int64_t r = 0; r < rank; ++r)
        sum = std::fma(c.b[static_cast<size_t>(n * rank + r)], c.a[static_cast<size_t>(r * inputs + k)], sum);
      const auto at = static_cast<size_t>(n * inputs + k);
      merged[at] = stored[at] + scale * sum;
    }
  return merged;
}

TEST(MergeLowRank, EqualsItsNaiveLoopBitForBitInEveryStoredType) {
  for (const Shape& shape : kShapes) {
    const Case c(shape);
    std::vector<float> merged(c.w.size());
    std::vector<Bf16> rounded(c.w.size());
    const auto expect_merged = [&](const WeightView& stored, const std::vector<float>& values, float scale) {
      const auto expected = naive_merge(c, values, scale);
      merge_low_rank(merged, stored, c.change(scale));
      EXPECT_EQ(merged, expected);
      merge_low_rank(rounded, stored, c.change(scale));
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(rounded[i], float_to_bf16(expected[i]));
    };
    expect_merged(c.view(), c.w, 1.7f);
    for (const DType dtype : {DType::bf16, DType::f16}) {
      std::vector<uint16_t> bits;
      std::vector<float> widened;
      for (const float value : c.w) {
        bits.push_back(dtype == DType::bf16 ? float_to_bf16(value) : float_to_f16(value));
        widened.push_back(dtype == DType::bf16 ? bf16_to_float(bits.back()) : f16_to_float(bits.back()));
      }
      expect_merged({bits.data(), dtype, shape.outputs, shape.inputs}, widened, 0.3f);
    }
  }
}

struct Gradient {
  std::vector<float> a, b;
  bool operator==(const Gradient&) const = default;
};

void add_gradient(Gradient& sum, const Case& c, float scale, Precision precision, int64_t begin,
                  int64_t end) {
  const auto part = [&](const std::vector<float>& values, int64_t width) {
    return std::span(values).subspan(static_cast<size_t>(begin * width),
                                     static_cast<size_t>((end - begin) * width));
  };
  Buffer scratch;
  low_rank_grad(sum.a, sum.b, scratch, part(c.grad_y, c.shape.outputs), part(c.x, c.shape.inputs),
                c.change(scale), precision);
}

Gradient gradient_of(const Case& c, float scale, Precision precision) {
  Gradient sum{std::vector<float>(c.a.size()), std::vector<float>(c.b.size())};
  add_gradient(sum, c, scale, precision, 0, c.shape.tokens);
  return sum;
}

Gradient naive_gradient(const Case& c, float scale, Precision precision) {
  const auto& [outputs, inputs, rank, tokens] = c.shape;
  const auto round = [&](float value) { return rounded(value, precision); };
  Gradient g{std::vector<float>(c.a.size()), std::vector<float>(c.b.size())};
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t r = 0; r < rank; ++r) {
      float down = 0, back = 0;
      for (int64_t k = 0; k < inputs; ++k)
        down = std::fma(round(c.x[static_cast<size_t>(t * inputs + k)]),
                        round(c.a[static_cast<size_t>(r * inputs + k)]), down);
      for (int64_t n = 0; n < outputs; ++n)
        back = std::fma(round(c.grad_y[static_cast<size_t>(t * outputs + n)]),
                        round(c.b[static_cast<size_t>(n * rank + r)]), back);
      for (int64_t n = 0; n < outputs; ++n) {
        float& sum = g.b[static_cast<size_t>(n * rank + r)];
        sum = std::fma(round(c.grad_y[static_cast<size_t>(t * outputs + n)]), round(scale * down), sum);
      }
      for (int64_t k = 0; k < inputs; ++k) {
        float& sum = g.a[static_cast<size_t>(r * inputs + k)];
        sum = std::fma(round(scale * back), round(c.x[static_cast<size_t>(t * inputs + k)]), sum);
      }
    }
  return g;
}

TEST(LowRankGrad, EqualsItsNaiveLoopBitForBit) {
  for (const auto precision : kPrecisions)
    for (const Shape& shape : kShapes) {
      const Case c(shape);
      EXPECT_EQ(gradient_of(c, 1.3f, precision), naive_gradient(c, 1.3f, precision)) << shape.outputs;
    }
}

TEST(LowRankGrad, IsTheDerivativeThroughTheMergedMatrix) {
  Case c(kShapes[1]);
  constexpr float kScale = 0.7f;
  const Gradient gradient = gradient_of(c, kScale, Precision::f32);
  const auto loss = [&] {
    std::vector<float> merged(c.w.size()), y(c.grad_y.size());
    merge_low_rank(merged, c.view(), c.change(kScale));
    matmul(y, c.x, {merged.data(), DType::f32, c.shape.outputs, c.shape.inputs}, Precision::f32);
    return test::dot(y, c.grad_y);
  };
  test::gradient_check("A", c.a, gradient.a, loss);
  test::gradient_check("B", c.b, gradient.b, loss);
}

TEST(LowRankGrad, PartsAndThreadsDoNotShow) {
  const Case c(kShapes[4]);
  const size_t before = num_threads();
  const Gradient whole = gradient_of(c, 2, Precision::f32);
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    Gradient parts{std::vector<float>(c.a.size()), std::vector<float>(c.b.size())};
    add_gradient(parts, c, 2, Precision::f32, 0, 17);
    add_gradient(parts, c, 2, Precision::f32, 17, c.shape.tokens);
    EXPECT_EQ(parts, whole);
  }
  set_num_threads(before);
}

// x Aᵀ is then x itself, and a scale that is a power of two shows in no rounding.
TEST(LowRankGrad, WithTheIdentityAsAIsScaleTimesTheFullGradientAtB) {
  Case c({12, 20, 20, 15});
  std::fill(c.a.begin(), c.a.end(), 0.0f);
  for (size_t i = 0; i < 20; ++i) c.a[i * 20 + i] = 1;
  std::vector<float> full(c.w.size());
  matmul_grad_weight(full, c.grad_y, c.x, 12, 20, Precision::f32, {});
  for (float& value : full) value *= 2;
  EXPECT_EQ(gradient_of(c, 2, Precision::f32).b, full);
}

}  // namespace
}  // namespace ropd::kernels
