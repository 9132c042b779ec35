#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "base/threads.h"
#include "kernels/attention_test_support.h"
#include "kernels/elementary.h"
#include "kernels/swiglu.h"

namespace ropd::kernels {
namespace {

using test::AttentionCase;
using test::naive_attention;
using test::run;

TEST(Attention, EqualsTheNaiveTwinOverOddSizes) {
  for (const auto& [lengths, heads, kv_heads, width] :
       std::vector<std::tuple<std::vector<int64_t>, int64_t, int64_t, int64_t>>{{{1}, 1, 1, 1},
                                                                                {{5, 1, 33}, 2, 1, 3},
                                                                                {{31, 32, 64}, 4, 2, 24},
                                                                                {{100, 7}, 3, 3, 17},
                                                                                {{65, 0, 2}, 6, 2, 32},
                                                                                {{130}, 70, 1, 8},
                                                                                {{9, 8}, 4, 2, 8},
                                                                                {{200}, 4, 2, 128}}) {
    const AttentionCase c(lengths, heads, kv_heads, width, 7);
    const auto result = run(c);
    const auto expected = naive_attention(c);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(result.out[i], expected[i], 3e-6) << "E " << width << " at " << i;
  }
}

// One row in the order of operations that all forms share: blocks of 32 keys, chains of fused multiply-adds,
// sixteen partial sums and the fixed tree.
std::vector<float> naive_row(const AttentionCase& c, int64_t sequence_begin, int64_t token, int64_t head) {
  const int64_t width = c.shape.head_dim, kv_heads = c.shape.num_kv_heads;
  const int64_t kv_head = head / (c.shape.num_heads / kv_heads);
  const float* q = c.q.data() + (token * c.shape.num_heads + head) * width;
  std::vector<float> out(static_cast<size_t>(width));
  float maximum = -std::numeric_limits<float>::infinity(), sums[16] = {};
  for (int64_t begin = sequence_begin; begin <= token; begin += 32) {
    const int64_t keys = std::min<int64_t>(32, token - begin + 1);
    float weights[32] = {}, block_maximum = -std::numeric_limits<float>::infinity();
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t e = 0; e < width; ++e)
        weights[j] = std::fma(q[e], c.k[((begin + j) * kv_heads + kv_head) * width + e], weights[j]);
      weights[j] *= c.shape.scale;
      block_maximum = std::max(block_maximum, weights[j]);
    }
    const float grown = std::max(maximum, block_maximum), factor = exp(maximum - grown);
    maximum = grown;
    for (int64_t j = 0; j < keys; ++j) weights[j] = exp(weights[j] - maximum);
    for (int64_t i = 0; i < 16; ++i) sums[i] = sums[i] * factor + weights[i] + weights[i + 16];
    for (int64_t e = 0; e < width; ++e) {
      out[static_cast<size_t>(e)] *= factor;
      for (int64_t j = 0; j < keys; ++j)
        out[static_cast<size_t>(e)] = std::fma(
            weights[j], c.v[((begin + j) * kv_heads + kv_head) * width + e], out[static_cast<size_t>(e)]);
    }
  }
  for (int64_t half = 8; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  for (float& value : out) value *= 1.0f / sums[0];
  return out;
}

TEST(Attention, HasTheBitsOfTheDefinitionForEveryWidth) {
  for (const int64_t width : {1, 8, 12, 20, 24, 32, 40, 56}) {
    AttentionCase c({5, 70, 180}, 4, 2, width, 17);
    for (float& value : c.q) value *= 40.0f;  // some weights are subnormal, many 0
    const auto result = run(c);
    for (size_t s = 0; s + 1 < c.begins.size(); ++s)
      for (int64_t t = c.begins[s]; t < c.begins[s + 1]; ++t)
        for (int64_t h = 0; h < 4; ++h) {
          const auto expected = naive_row(c, c.begins[s], t, h);
          for (int64_t e = 0; e < width; ++e)
            ASSERT_EQ(result.out[(t * 4 + h) * width + e], expected[static_cast<size_t>(e)])
                << "E " << width << ", token " << t << ", head " << h;
        }
  }
}

TEST(Attention, LogSumExpIsThatOfTheScaledScores) {
  const AttentionCase c({40}, 2, 1, 8, 3);
  const auto result = run(c);
  for (int64_t t : {0, 1, 31, 32, 39})
    for (int64_t h = 0; h < 2; ++h) {
      double total = 0;
      for (int64_t j = 0; j <= t; ++j) {
        double score = 0;
        for (int64_t e = 0; e < 8; ++e)
          score += static_cast<double>(c.q[(t * 2 + h) * 8 + e]) * c.k[j * 8 + e];
        total += std::exp(score * c.shape.scale);
      }
      EXPECT_NEAR(result.log_sum_exp[t * 2 + h], std::log(total), 2e-6);
    }
}

TEST(Attention, PackedEqualsOneByOne) {
  const std::vector<int64_t> lengths = {3, 70, 1, 129, 32, 64};
  const AttentionCase c(lengths, 4, 2, 20, 11);
  const auto packed = run(c);
  for (size_t s = 0; s < lengths.size(); ++s) {
    AttentionCase alone({lengths[s]}, 4, 2, 20, 0);
    const auto part = [&](const std::vector<float>& all, int64_t width) {
      return std::vector<float>(all.begin() + c.begins[s] * width, all.begin() + c.begins[s + 1] * width);
    };
    alone.q = part(c.q, 80);
    alone.k = part(c.k, 40);
    alone.v = part(c.v, 40);
    const auto result = run(alone);
    EXPECT_EQ(result.out, part(packed.out, 80));
    EXPECT_EQ(result.log_sum_exp, part(packed.log_sum_exp, 4));
  }
}

TEST(Attention, DoesNotDependOnLaterTokens) {
  AttentionCase c({100}, 2, 2, 16, 5);
  const auto before = run(c);
  for (size_t i = 60 * 32; i < c.k.size(); ++i) c.k[i] = c.v[i] = 100.0f;
  const auto after = run(c);
  for (size_t i = 0; i < 60 * 32; ++i) ASSERT_EQ(before.out[i], after.out[i]);
}

// With scores in the hundreds most weights underflow; every output must still be a mean of the values seen so
// far.
TEST(Attention, SurvivesLargeScores) {
  AttentionCase c({64}, 1, 1, 16, 9);
  for (float& value : c.q) value *= 300.0f;
  const auto result = run(c);
  for (int64_t e = 0; e < 16; ++e) {
    float low = std::numeric_limits<float>::max(), high = -low;
    for (int64_t t = 0; t < 64; ++t) {
      low = std::min(low, c.v[t * 16 + e]);
      high = std::max(high, c.v[t * 16 + e]);
      const float value = result.out[t * 16 + e];
      EXPECT_TRUE(value >= low - 1e-5f && value <= high + 1e-5f) << value;
    }
  }
}

TEST(Attention, DoesNotDependOnTheNumberOfThreads) {
  const AttentionCase c({300, 20, 90}, 4, 2, 32, 13);
  const size_t threads = num_threads();
  set_num_threads(1);
  const auto one = run(c);
  set_num_threads(3);
  const auto three = run(c);
  set_num_threads(threads);
  EXPECT_EQ(one.out, three.out);
  EXPECT_EQ(one.log_sum_exp, three.log_sum_exp);
}

// A cache whose pages are handed out in a scrambled order.
struct TestCache {
  std::vector<std::byte> storage;
  std::vector<std::vector<int32_t>> tables;
  KvPageView view;
  TestCache(const AttentionCase& c, int64_t page_tokens, DType dtype) {
    view.dtype = dtype;
    view.page_tokens = page_tokens;
    view.num_kv_heads = c.shape.num_kv_heads;
    view.head_dim = c.shape.head_dim;
    for (size_t s = 0; s + 1 < c.begins.size(); ++s) {
      tables.emplace_back();
      for (int64_t t = c.begins[s]; t < c.begins[s + 1]; t += page_tokens)
        ++view.num_pages, tables.back().push_back(0);
    }
    int32_t next = static_cast<int32_t>(view.num_pages);
    for (auto& table : tables)
      for (int32_t& page : table) page = --next;
    storage.resize(static_cast<size_t>(view.num_pages * view.page_bytes()));
    view.data = storage.data();
  }
};

// Feeds every sequence in chunks of the given number of tokens, all sequences side by side, as an engine
// does.
std::vector<float> run_paged(const AttentionCase& c, int64_t page_tokens, DType dtype, int64_t chunk) {
  TestCache cache(c, page_tokens, dtype);
  const int64_t q_width = c.shape.num_heads * c.shape.head_dim,
                kv_width = c.shape.num_kv_heads * c.shape.head_dim;
  std::vector<float> result(c.q.size());
  for (int64_t first = 0; first < c.tokens(); first += chunk) {
    std::vector<PagedRows> groups;
    std::vector<int64_t> rows;
    for (size_t s = 0; s + 1 < c.begins.size(); ++s) {
      const int64_t count = std::min(chunk, c.begins[s + 1] - c.begins[s] - first);
      if (count <= 0) continue;
      groups.push_back({cache.tables[s].data(), first, count});
      for (int64_t r = 0; r < count; ++r) rows.push_back(c.begins[s] + first + r);
    }
    const auto gather = [&](const std::vector<float>& all, int64_t width) {
      std::vector<float> some;
      for (int64_t row : rows)
        some.insert(some.end(), all.begin() + row * width, all.begin() + (row + 1) * width);
      return some;
    };
    std::vector<float> out(rows.size() * static_cast<size_t>(q_width));
    paged_attention(out, cache.view, gather(c.q, q_width), gather(c.k, kv_width), gather(c.v, kv_width),
                    groups, c.shape);
    for (size_t r = 0; r < rows.size(); ++r)
      std::copy_n(out.begin() + static_cast<int64_t>(r) * q_width, q_width,
                  result.begin() + rows[r] * q_width);
  }
  return result;
}

TEST(PagedAttention, HasTheBitsOfThePackedForm) {
  for (const int64_t width : {24, 32, 17, 128}) {
    const AttentionCase c({70, 3, 131, 32, 1}, 4, 2, width, 21);
    const auto packed = run(c);
    for (const int64_t page_tokens : {32, 64, 128})
      for (const int64_t chunk : {1, 7, 32, 50, 200})
        ASSERT_EQ(run_paged(c, page_tokens, DType::f32, chunk), packed.out)
            << width << " " << page_tokens << " " << chunk;
  }
}

// More key blocks than go through a stage together, heads that are no whole number of vectors.
TEST(PagedAttention, HasTheBitsOfThePackedFormOverManyBlocks) {
  for (const int64_t width : {12, 20, 24}) {
    const AttentionCase c({300, 33}, 2, 1, width, 25);
    const auto packed = run(c);
    for (const int64_t chunk : {1, 5}) ASSERT_EQ(run_paged(c, 64, DType::f32, chunk), packed.out) << width;
  }
}

TEST(PagedAttention, Bf16PagesHaveTheBitsOfThePackedFormOnTheBf16Grid) {
  for (const int64_t width : {24, 128}) {
    AttentionCase c({70, 131, 1}, 6, 2, width, 22);
    round_to_bf16(c.k);
    round_to_bf16(c.v);
    const auto packed = run(c);
    for (const int64_t chunk : {1, 2, 13, 200})
      ASSERT_EQ(run_paged(c, 32, DType::bf16, chunk), packed.out) << width << " " << chunk;
  }
}

// One row of each sequence, and so many that several tasks need what the same group writes.
TEST(PagedAttention, DoesNotDependOnTheNumberOfThreads) {
  const AttentionCase c({170, 150, 131, 160}, 8, 4, 64, 26);
  const auto packed = run(c);
  const size_t before = num_threads();
  for (const size_t threads : {1, 3, 8}) {
    set_num_threads(threads);
    for (const int64_t chunk : {1, 7, 50})
      EXPECT_EQ(run_paged(c, 64, DType::f32, chunk), packed.out) << threads << " threads, " << chunk;
  }
  set_num_threads(before);
}

TEST(PagedAttention, IgnoresWhatLaterSlotsOfAPageHold) {
  const AttentionCase c({20}, 2, 1, 16, 23);
  TestCache cache(c, 32, DType::f32);
  std::fill_n(reinterpret_cast<float*>(cache.storage.data()), cache.storage.size() / 4, 1e30f);
  const PagedRows rows{cache.tables[0].data(), 0, 20};
  std::vector<float> out(c.q.size());
  paged_attention(out, cache.view, c.q, c.k, c.v, {&rows, 1}, c.shape);
  EXPECT_EQ(out, run(c).out);
}

// Their first 32 positions; each has a page of its own for the other 8.
TEST(PagedAttention, TwoSequencesMayShareAPage) {
  constexpr int64_t kShared = 32, kWidth = 16, kHeads = 2;
  const AttentionCase c({kShared + 8, kShared + 8}, kHeads, 1, kWidth, 24);
  TestCache cache(c, 32, DType::f32);
  const auto& tables = cache.tables;
  const std::vector<int32_t> other = {tables[0][0], tables[1][1]};
  const auto between = [](const std::vector<float>& all, int64_t row_size, int64_t begin, int64_t end) {
    return std::vector<float>(all.begin() + begin * row_size, all.begin() + end * row_size);
  };
  const auto twice = [&](const std::vector<float>& all, int64_t row_size) {
    std::vector<float> result = between(all, row_size, kShared, kShared + 8);
    result.insert(result.end(), result.begin(), result.begin() + 8 * row_size);
    return result;
  };
  std::vector<float> out(kShared * kHeads * kWidth);
  const PagedRows first{tables[0].data(), 0, kShared};
  paged_attention(out, cache.view, between(c.q, kHeads * kWidth, 0, kShared),
                  between(c.k, kWidth, 0, kShared), between(c.v, kWidth, 0, kShared), {&first, 1}, c.shape);
  const std::vector<PagedRows> groups = {{tables[0].data(), kShared, 8}, {other.data(), kShared, 8}};
  out.resize(2 * 8 * kHeads * kWidth);
  paged_attention(out, cache.view, twice(c.q, kHeads * kWidth), twice(c.k, kWidth), twice(c.v, kWidth),
                  groups, c.shape);
  EXPECT_EQ(out, twice(run(c).out, kHeads * kWidth));
}

// A sequence in one piece, and the same sequence whose first tokens lie elsewhere.
TEST(Attention, SharedKeysGiveTheRowsOfOnePiece) {
  constexpr int64_t kHeads = 4, kKvHeads = 2, kWidth = 20;
  for (const auto& [shared, own] :
       {std::pair<int64_t, int64_t>{1, 1}, {24, 40}, {32, 5}, {45, 90}, {130, 3}}) {
    const AttentionCase whole({shared + own}, kHeads, kKvHeads, kWidth, 21);
    const auto rest = [&](const std::vector<float>& all, int64_t row) {
      return std::vector<float>(all.begin() + shared * row, all.end());
    };
    const auto q = rest(whole.q, kHeads * kWidth), k = rest(whole.k, kKvHeads * kWidth),
               v = rest(whole.v, kKvHeads * kWidth);
    const std::vector<int64_t> begins = {0, own};
    const SharedKeys before{whole.k.data(), whole.v.data(), shared};
    const auto wanted = run(whole);
    std::vector<float> out(q.size()), log_sum_exp(static_cast<size_t>(own * kHeads));
    attention(out, log_sum_exp, q, k, v, begins, whole.shape, std::span(&before, 1));
    EXPECT_EQ(out, rest(wanted.out, kHeads * kWidth));
    EXPECT_EQ(log_sum_exp, rest(wanted.log_sum_exp, kHeads));
  }
}

}  // namespace
}  // namespace ropd::kernels
