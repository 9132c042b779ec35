// Shared by the attention tests: random packed inputs and a naive twin in double.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/attention.h"
#include "support/gradient_check.h"

namespace ropd::kernels::test {

struct AttentionCase {
  AttentionShape shape;
  std::vector<int64_t> begins;  // [B + 1]
  std::vector<float> q, k, v;

  AttentionCase(const std::vector<int64_t>& lengths, int64_t heads, int64_t kv_heads, int64_t width,
                uint32_t seed)
      : shape{heads, kv_heads, width, 1.0f / std::sqrt(static_cast<float>(width))}, begins{0} {
    for (int64_t length : lengths) begins.push_back(begins.back() + length);
    q = ropd::test::random_values(static_cast<size_t>(tokens() * heads * width), seed);
    k = ropd::test::random_values(static_cast<size_t>(tokens() * kv_heads * width), seed + 1);
    v = ropd::test::random_values(static_cast<size_t>(tokens() * kv_heads * width), seed + 2);
  }
  int64_t tokens() const { return begins.back(); }
};

struct AttentionResult {
  std::vector<float> out, log_sum_exp;
};

inline AttentionResult run(const AttentionCase& c) {
  AttentionResult result{std::vector<float>(c.q.size()),
                         std::vector<float>(static_cast<size_t>(c.tokens() * c.shape.num_heads))};
  attention(result.out, result.log_sum_exp, c.q, c.k, c.v, c.begins, c.shape);
  return result;
}

// out [T, H*E] in double.
inline std::vector<double> naive_attention(const AttentionCase& c) {
  const int64_t heads = c.shape.num_heads, kv_heads = c.shape.num_kv_heads, width = c.shape.head_dim,
                group = heads / kv_heads;
  std::vector<double> out(c.q.size(), 0.0), weights;
  for (size_t s = 0; s + 1 < c.begins.size(); ++s)
    for (int64_t t = c.begins[s]; t < c.begins[s + 1]; ++t)
      for (int64_t h = 0; h < heads; ++h) {
        const float* q = c.q.data() + (t * heads + h) * width;
        double total = 0;
        weights.clear();
        for (int64_t j = c.begins[s]; j <= t; ++j) {
          double score = 0;
          for (int64_t e = 0; e < width; ++e)
            score +=
                static_cast<double>(q[e]) * c.k[static_cast<size_t>((j * kv_heads + h / group) * width + e)];
          weights.push_back(std::exp(score * c.shape.scale));
          total += weights.back();
        }
        for (int64_t j = c.begins[s]; j <= t; ++j)
          for (int64_t e = 0; e < width; ++e)
            out[static_cast<size_t>((t * heads + h) * width + e)] +=
                weights[static_cast<size_t>(j - c.begins[s])] / total *
                c.v[static_cast<size_t>((j * kv_heads + h / group) * width + e)];
      }
  return out;
}

}  // namespace ropd::kernels::test
