#include <gtest/gtest.h>

#include "base/threads.h"
#include "kernels/attention.h"
#include "kernels/attention_test_support.h"
#include "support/gradient_check.h"

namespace ropd::kernels {
namespace {

using ropd::test::gradient_check;
using ropd::test::random_values;
using test::AttentionCase;
using test::naive_attention;
using test::run;

struct Gradients {
  std::vector<float> q, k, v;
  bool operator==(const Gradients&) const = default;
};

Gradients gradients_of(const AttentionCase& c, const std::vector<float>& grad_out) {
  const auto result = run(c);
  // Whatever was there is replaced.
  Gradients gradients{std::vector<float>(c.q.size(), 7.0f), std::vector<float>(c.k.size(), 7.0f),
                      std::vector<float>(c.v.size(), 7.0f)};
  attention_grad(gradients.q, gradients.k, gradients.v, grad_out, result.out, result.log_sum_exp, c.q, c.k,
                 c.v, c.begins, c.shape);
  return gradients;
}

TEST(AttentionGrad, AgreesWithCentralDifferences) {
  for (const auto& [lengths, heads, kv_heads, width] :
       std::vector<std::tuple<std::vector<int64_t>, int64_t, int64_t, int64_t>>{
           {{1, 2}, 1, 1, 1},
           {{9, 0, 35}, 2, 1, 5},
           {{40}, 4, 2, 16},
           {{70, 3}, 3, 1, 24},
           {{5}, 80, 1, 3},
           {{110}, 2, 1, 128}}) {  // the last one leaves the cache
    AttentionCase c(lengths, heads, kv_heads, width, 31);
    const auto grad_out = random_values(c.q.size(), 5);
    const Gradients gradients = gradients_of(c, grad_out);
    const auto loss = [&] {
      const auto out = naive_attention(c);
      double total = 0;
      for (size_t i = 0; i < out.size(); ++i) total += out[i] * grad_out[i];
      return total;
    };
    gradient_check("q", c.q, gradients.q, loss, 2e-5, 1e-3f, 25);
    gradient_check("k", c.k, gradients.k, loss, 2e-5, 1e-3f, 25);
    gradient_check("v", c.v, gradients.v, loss, 2e-5, 1e-3f, 25);
  }
}

TEST(AttentionGrad, PackedEqualsOneByOne) {
  const std::vector<int64_t> lengths = {33, 1, 90};
  const AttentionCase c(lengths, 4, 2, 20, 11);
  const auto grad_out = random_values(c.q.size(), 6);
  const Gradients packed = gradients_of(c, grad_out);
  for (size_t s = 0; s < lengths.size(); ++s) {
    AttentionCase alone({lengths[s]}, 4, 2, 20, 0);
    const auto part = [&](const std::vector<float>& all, int64_t width) {
      return std::vector<float>(all.begin() + c.begins[s] * width, all.begin() + c.begins[s + 1] * width);
    };
    alone.q = part(c.q, 80);
    alone.k = part(c.k, 40);
    alone.v = part(c.v, 40);
    const Gradients gradients = gradients_of(alone, part(grad_out, 80));
    EXPECT_EQ(gradients.q, part(packed.q, 80));
    EXPECT_EQ(gradients.k, part(packed.k, 40));
    EXPECT_EQ(gradients.v, part(packed.v, 40));
  }
}

TEST(AttentionGrad, DoesNotDependOnTheNumberOfThreads) {
  const AttentionCase c({150, 20, 90}, 4, 2, 32, 13);
  const auto grad_out = random_values(c.q.size(), 8);
  const size_t threads = num_threads();
  set_num_threads(1);
  const Gradients one = gradients_of(c, grad_out);
  set_num_threads(3);
  const Gradients three = gradients_of(c, grad_out);
  set_num_threads(threads);
  EXPECT_EQ(one, three);
}

}  // namespace
}  // namespace ropd::kernels
