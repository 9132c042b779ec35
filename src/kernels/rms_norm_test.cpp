#include "kernels/rms_norm.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/threads.h"
#include "support/gradient_check.h"

namespace ropd::kernels {
namespace {

using ropd::test::gradient_check;
using ropd::test::random_values;

constexpr float kEps = 1e-5f;

// The order of operations the header promises: sixteen partial sums, then halves added.
float naive_inv_rms(std::span<const float> x) {
  float lanes[16] = {};
  for (size_t i = 0; i < x.size(); ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  for (size_t half = 8; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return 1.0f / std::sqrt(lanes[0] / static_cast<float>(x.size()) + kEps);
}

struct Norm {
  std::vector<float> y, inv_rms;
};
Norm run(const std::vector<float>& x, const std::vector<float>& weight) {
  Norm norm{std::vector<float>(x.size()), std::vector<float>(x.size() / weight.size())};
  rms_norm(norm.y, norm.inv_rms, x, weight, kEps);
  return norm;
}

TEST(RmsNorm, HasTheBitsOfTheNaiveTwinOverOddSizes) {
  for (const size_t width : {1, 3, 12, 15, 16, 17, 20, 24, 64, 129, 1024})
    for (const size_t rows : {1, 2, 7}) {
      const auto x = random_values(rows * width, 1), weight = random_values(width, 2);
      const Norm norm = run(x, weight);
      for (size_t t = 0; t < rows; ++t) {
        ASSERT_EQ(norm.inv_rms[t], naive_inv_rms(std::span(x).subspan(t * width, width)));
        for (size_t i = 0; i < width; ++i)
          ASSERT_EQ(norm.y[t * width + i], x[t * width + i] * norm.inv_rms[t] * weight[i]);
      }
    }
}

// Rows that end where the memory ends: an access behind them, even a masked one that is not masked in
// hardware, would stop the process.
TEST(RmsNorm, TouchesNothingBehindItsRows) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  float* const end = static_cast<float*>(memory) + page / sizeof(float);
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  for (size_t width = 1; width <= 40; ++width) {
    const auto values = random_values(width, 6), weight = random_values(width, 7);
    const std::span<float> x(end - width, width);
    std::copy(values.begin(), values.end(), x.begin());
    float inv_rms = 0;
    rms_norm(x, {&inv_rms, 1}, x, weight, kEps);
    for (size_t i = 0; i < width; ++i) ASSERT_EQ(x[i], values[i] * inv_rms * weight[i]) << width;
  }
  munmap(memory, 2 * page);
}

TEST(RmsNorm, GradientAgreesWithCentralDifferences) {
  for (const size_t width : {1, 5, 16, 40}) {
    const size_t rows = 3;
    auto x = random_values(rows * width, 3), weight = random_values(width, 4);
    const auto grad_y = random_values(rows * width, 5);
    const Norm norm = run(x, weight);
    std::vector<float> grad_x(x.size()), grad_weight(width);
    rms_norm_grad(grad_x, grad_weight, grad_y, x, norm.inv_rms, weight);
    const auto loss = [&] {
      double total = 0;
      for (size_t t = 0; t < rows; ++t) {
        double mean = 0;
        for (size_t i = 0; i < width; ++i) mean += static_cast<double>(x[t * width + i]) * x[t * width + i];
        const double inverse = 1.0 / std::sqrt(mean / static_cast<double>(width) + kEps);
        for (size_t i = 0; i < width; ++i)
          total += x[t * width + i] * inverse * weight[i] * grad_y[t * width + i];
      }
      return total;
    };
    gradient_check("x", x, grad_x, loss, 1e-4, 1e-4f);
    gradient_check("weight", weight, grad_weight, loss, 1e-4, 1e-3f);
  }
}

TEST(RmsNorm, TwoMicrobatchesAddUpToOne) {
  const size_t rows = 50, width = 70, first = 23;
  const auto x = random_values(rows * width, 6), weight = random_values(width, 7),
             grad_y = random_values(rows * width, 8);
  const Norm norm = run(x, weight);
  std::vector<float> grad_x(x.size()), grad_x2(x.size()), once(width, 0.5f), twice(width, 0.5f);
  rms_norm_grad(grad_x, once, grad_y, x, norm.inv_rms, weight);
  const auto part = [&](auto& values, size_t begin, size_t end, size_t stride) {
    return std::span(values).subspan(begin * stride, (end - begin) * stride);
  };
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, first}, {first, rows}})
    rms_norm_grad(part(grad_x2, begin, end, width), twice, part(grad_y, begin, end, width),
                  part(x, begin, end, width), part(norm.inv_rms, begin, end, 1), weight);
  EXPECT_EQ(once, twice);
  EXPECT_EQ(grad_x, grad_x2);
}

TEST(RmsNorm, DoesNotDependOnTheNumberOfThreads) {
  const size_t rows = 300, width = 200;
  const auto x = random_values(rows * width, 9), weight = random_values(width, 10),
             grad_y = random_values(rows * width, 11);
  const size_t threads = num_threads();
  std::vector<std::vector<float>> results;
  for (const int count : {1, 3}) {
    set_num_threads(count);
    const Norm norm = run(x, weight);
    std::vector<float> grad_x(x.size()), grad_weight(width);
    rms_norm_grad(grad_x, grad_weight, grad_y, x, norm.inv_rms, weight);
    for (const auto& values : {norm.y, norm.inv_rms, grad_x, grad_weight}) results.push_back(values);
  }
  set_num_threads(threads);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(results[i], results[i + 4]);
}

TEST(RmsNorm, GradientAddsToGradXAndMaySkipTheWeight) {
  const auto x = random_values(20, 12), weight = random_values(10, 13), grad_y = random_values(20, 14);
  const Norm norm = run(x, weight);
  std::vector<float> fresh(20), added(20, 1.0f);
  rms_norm_grad(fresh, {}, grad_y, x, norm.inv_rms, weight);
  rms_norm_grad(added, {}, grad_y, x, norm.inv_rms, weight);
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(added[i], fresh[i] + 1.0f, 1e-6f);
}

}  // namespace
}  // namespace ropd::kernels
