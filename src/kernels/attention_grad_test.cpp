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

// A sequence in one piece, and the same sequence whose first tokens lie elsewhere: what the gradient of its
// own rows gives is the same bit for bit, and what its first tokens get from them goes to a place of its own.
TEST(AttentionGrad, SharedKeysGetWhatTheOwnRowsGiveThem) {
  constexpr int64_t kHeads = 4, kKvHeads = 2, kWidth = 20;
  for (const auto& [shared, own] :
       {std::pair<int64_t, int64_t>{1, 1}, {24, 40}, {32, 5}, {45, 90}, {130, 3}}) {
    const AttentionCase whole({shared + own}, kHeads, kKvHeads, kWidth, 21);
    const size_t q_at = static_cast<size_t>(shared * kHeads * kWidth),
                 kv_at = static_cast<size_t>(shared * kKvHeads * kWidth);
    auto grad_out = random_values(whole.q.size(), 9);
    std::fill_n(grad_out.begin(), q_at, 0.0f);  // the first tokens have no loss
    const Gradients wanted = gradients_of(whole, grad_out);
    const auto rest = [](const std::vector<float>& all, size_t at) {
      return std::vector<float>(all.begin() + static_cast<ptrdiff_t>(at), all.end());
    };
    const auto first = [](const std::vector<float>& all, size_t count) {
      return std::vector<float>(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
    };
    const auto q = rest(whole.q, q_at), k = rest(whole.k, kv_at), v = rest(whole.v, kv_at),
               own_grad_out = rest(grad_out, q_at);
    const std::vector<int64_t> begins = {0, own};
    const SharedKeys before{whole.k.data(), whole.v.data(), shared};
    const auto out_of_whole = run(whole);
    std::vector<float> out(q.size()), log_sum_exp(static_cast<size_t>(own * kHeads));
    attention(out, log_sum_exp, q, k, v, begins, whole.shape, std::span(&before, 1));
    EXPECT_EQ(out, rest(out_of_whole.out, q_at));
    EXPECT_EQ(log_sum_exp, rest(out_of_whole.log_sum_exp, static_cast<size_t>(shared * kHeads)));

    Gradients got{std::vector<float>(q.size(), 7.0f), std::vector<float>(k.size(), 7.0f),
                  std::vector<float>(v.size(), 7.0f)};
    std::vector<float> shared_k(kv_at, 7.0f), shared_v(kv_at, 7.0f);
    const SharedKeysGrad grad_before{shared_k.data(), shared_v.data()};
    attention_grad(got.q, got.k, got.v, own_grad_out, out, log_sum_exp, q, k, v, begins, whole.shape,
                   std::span(&before, 1), std::span(&grad_before, 1));
    EXPECT_EQ(got.q, rest(wanted.q, q_at));
    EXPECT_EQ(got.k, rest(wanted.k, kv_at));
    EXPECT_EQ(got.v, rest(wanted.v, kv_at));
    EXPECT_EQ(shared_k, first(wanted.k, kv_at));
    EXPECT_EQ(shared_v, first(wanted.v, kv_at));
  }
}

}  // namespace
}  // namespace ropd::kernels
