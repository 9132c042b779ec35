// The gradient of attention(): query chunks outside, key blocks inside; scores are recomputed from
// log_sum_exp.
//   P = exp(S - lse)     dV += Pᵀ dO
//   dP = dO Vᵀ           dS = scale * P * (dP - rowsum(dO * O))
//   dQ += dS K           dK += dSᵀ Q
// One thread does all of a (sequence, kv head), so every sum has one order: keys ascending for dQ, tokens
// ascending for dK and dV.
#include "kernels/attention.h"
#include "kernels/attention_blocks.h"
#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_grad.cpp"
#include <hwy/foreach_target.h>

#include "base/parallel.h"
#include "kernels/lanes.h"
#include "kernels/tile_product.h"
#include "tensor/buffer.h"

#ifndef ROPD_KERNELS_ATTENTION_GRAD_TASK
#define ROPD_KERNELS_ATTENTION_GRAD_TASK
namespace ropd::kernels {
namespace {

// One sequence, one kv head with its group of query heads.
struct GradTask {
  float* grad_q = nullptr;                                        // [length, group, E], tokens q_stride apart
  const float *grad_out = nullptr, *out = nullptr, *q = nullptr;  // likewise
  const float* log_sum_exp = nullptr;                             // [length, group], tokens lse_stride apart
  float *grad_k = nullptr, *grad_v = nullptr;                     // [length, E], tokens kv_stride apart
  const float *k = nullptr, *v = nullptr;                         // likewise
  int64_t q_stride = 0, kv_stride = 0, lse_stride = 0;
  int64_t length = 0, group = 0, head_dim = 0, tokens_at_once = 0;
  float scale = 1;
};

// Offsets into a thread's scratch, in floats. M rows = tokens of a chunk x heads of a kv head; W =
// row_distance(E). What belongs to one block of keys lies together, so that the next block can be fetched as
// one piece.
struct GradScratch {
  int64_t q, grad_out, grad_q, scores, grad_scores, deltas, blocks, total;
  int64_t values_across, keys, grad_keys, grad_values, block_size;  // within a block, keys_across first
  GradScratch(int64_t length, int64_t rows, int64_t head_dim) {
    const int64_t distance = row_distance(head_dim);
    values_across = head_dim * kKeyBlock;            // [E, 32], as is keys_across
    keys = values_across + head_dim * kKeyBlock;     // [32, W]
    grad_keys = keys + kKeyBlock * distance;         // [32, W]
    grad_values = grad_keys + kKeyBlock * distance;  // [32, W]
    block_size = grad_values + kKeyBlock * distance;
    q = 0;                                    // [M, W]
    grad_out = q + rows * distance;           // [M, W]
    grad_q = grad_out + rows * distance;      // [M, W]
    scores = grad_q + rows * distance;        // [M, 32]
    grad_scores = scores + rows * kKeyBlock;  // [M, 32]
    deltas = grad_scores + rows * kKeyBlock;  // [M]
    blocks = deltas + round_up(rows, 16);
    total = blocks + (length + kKeyBlock - 1) / kKeyBlock * block_size;
  }
  int64_t block(int64_t key) const { return blocks + key / kKeyBlock * block_size; }  // that holds a key
};

}  // namespace
}  // namespace ropd::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

// width elements and zeros up to padded, a whole number of vectors.
HWY_INLINE void copy_padded(float* to, const float* from, int64_t width, int64_t padded) {
  int64_t e = 0;
  for (; e + kWidth <= width; e += kWidth) hn::StoreU(hn::LoadU(FloatTag(), from + e), FloatTag(), to + e);
  for (; e < width; ++e) to[e] = from[e];
  for (; e < padded; ++e) to[e] = 0.0f;
}

// scores become P, grad_scores become dS; both 0 for keys the row does not see, of the half of the block that
// it sees something of.
HWY_INLINE void score_gradients(float* scores, float* grad_scores, float log_sum_exp, float delta,
                                int64_t visible, float scale) {
  const Lanes scales = broadcast(scale), lse = broadcast(-log_sum_exp), deltas = broadcast(delta);
  const int64_t computed = visible <= kLanes ? kLanes : kKeyBlock;
  for (int64_t j = 0; j < computed; j += kLanes) {
    const Lanes p = exp(fma(load(scores + j), scales, lse));
    store(p, scores + j);
    store(p * (load(grad_scores + j) - deltas) * scales, grad_scores + j);
  }
  if (visible < kKeyBlock) {
    std::fill(scores + visible, scores + computed, 0.0f);
    std::fill(grad_scores + visible, grad_scores + computed, 0.0f);
  }
}

void load_keys(const GradTask& task, const GradScratch& at, float* scratch) {
  const int64_t width = task.head_dim, padded = round_up(width, kWidth), distance = row_distance(width);
  for (int64_t begin = 0; begin < task.length; begin += kKeyBlock) {
    const int64_t end = std::min(begin + kKeyBlock, task.length);
    float* const block = scratch + at.block(begin);
    for (int64_t j = begin; j < end; ++j) {
      const int64_t to = (j - begin) * distance;
      copy_padded(block + at.keys + to, task.k + j * task.kv_stride, width, padded);
    }
    std::fill_n(block + at.grad_keys, 2 * kKeyBlock * distance, 0.0f);  // and grad_values
    if (end - begin < kKeyBlock) std::fill_n(block, 2 * width * kKeyBlock, 0.0f);
    const int64_t from = begin * task.kv_stride;
    transpose_keys(block, task.k + from, task.kv_stride, 0, end - begin, width);
    transpose_keys(block + at.values_across, task.v + from, task.kv_stride, 0, end - begin, width);
  }
}

void load_queries(const GradTask& task, const GradScratch& at, float* scratch, int64_t first,
                  int64_t tokens) {
  const int64_t width = task.head_dim, padded = round_up(width, kWidth), distance = row_distance(width);
  for (int64_t m = 0; m < tokens * task.group; ++m) {
    const int64_t from = (first + m / task.group) * task.q_stride + m % task.group * width;
    copy_padded(scratch + at.q + m * distance, task.q + from, width, padded);
    copy_padded(scratch + at.grad_out + m * distance, task.grad_out + from, width, padded);
    Lanes products = broadcast(0.0f);
    for_lanes(width, [&](int64_t e, int64_t n) {
      products = fma(load(task.grad_out + from + e, n), load(task.out + from + e, n), products);
    });
    scratch[at.deltas + m] = sum(products);
  }
}

// fetch: of the block that follows this one.
template <class Fetch>
void grad_block(const GradTask& task, const GradScratch& at, float* scratch, int64_t first, int64_t tokens,
                int64_t begin, Fetch fetch) {
  const int64_t width = task.head_dim, padded = round_up(width, kWidth), distance = row_distance(width);
  const int64_t group = task.group;
  const RowsOfBlock rows(begin, first, tokens * group, group);
  const int64_t keys = std::min(kKeyBlock, first + tokens - begin);
  float* const block = scratch + at.block(begin);
  const auto q = [&](int64_t row) { return scratch + at.q + row * distance; };
  const auto grad_out = [&](int64_t row) { return scratch + at.grad_out + row * distance; };
  const auto scores = [&](int64_t row) { return scratch + at.scores + row * kKeyBlock; };
  const auto grad_scores = [&](int64_t row) { return scratch + at.grad_scores + row * kKeyBlock; };
  rows.for_halves([&](int64_t row, int64_t count, int64_t n) {
    product(scores(row), kKeyBlock, {q(row), distance, 1}, block, kKeyBlock, count, n, width, false, fetch);
    product(grad_scores(row), kKeyBlock, {grad_out(row), distance, 1}, block + at.values_across, kKeyBlock,
            count, n, width, false, fetch);
  });
  for (int64_t m = rows.first; m < rows.end; ++m) {
    const int64_t token = first + m / group;
    score_gradients(scores(m), grad_scores(m), task.log_sum_exp[token * task.lse_stride + m % group],
                    scratch[at.deltas + m], token - begin + 1, task.scale);
  }
  // Keys [key, key + count), seen by the rows from `row` on.
  const auto add_to_keys = [&](int64_t key, int64_t count, int64_t row) {
    product(block + at.grad_values + key * distance, distance, {scores(row) + key, 1, kKeyBlock},
            grad_out(row), distance, count, padded, rows.end - row, true, fetch);
    product(block + at.grad_keys + key * distance, distance, {grad_scores(row) + key, 1, kKeyBlock}, q(row),
            distance, count, padded, rows.end - row, true, fetch);
  };
  if (rows.first == rows.middle) {
    add_to_keys(0, keys, rows.first);
  } else {
    constexpr int64_t kHalf = kKeyBlock / 2;
    add_to_keys(0, std::min(kHalf, keys), rows.first);
    if (rows.middle < rows.end) add_to_keys(kHalf, keys - kHalf, rows.middle);
  }
  rows.for_halves([&](int64_t row, int64_t count, int64_t n) {
    product(scratch + at.grad_q + row * distance, distance, {grad_scores(row), kKeyBlock, 1}, block + at.keys,
            distance, count, padded, std::min(n, keys), begin > 0, fetch);
  });
}

void grad_task(const GradTask& task, float* scratch) {
  const int64_t width = task.head_dim, distance = row_distance(width), group = task.group;
  const GradScratch at(task.length, std::min(task.tokens_at_once, task.length) * group, width);
  const bool is_far =
      task.length / kKeyBlock * at.block_size * static_cast<int64_t>(sizeof(float)) > kWorthFetching;
  load_keys(task, at, scratch);
  int64_t tokens = 0;
  for (int64_t first = 0; first < task.length; first += tokens) {
    tokens = chunk_at(first, task.length, task.tokens_at_once);
    load_queries(task, at, scratch, first, tokens);
    for (int64_t begin = 0; begin < first + tokens; begin += kKeyBlock) {
      if (!is_far) {
        grad_block(task, at, scratch, first, tokens, begin, NoFetch());
        continue;
      }
      const int64_t next = begin + kKeyBlock < first + tokens ? begin + kKeyBlock : 0;
      BlockFetch fetch(scratch + at.block(next), at.block_size * static_cast<int64_t>(sizeof(float)),
                       4 * num_tiles(tokens * group, kKeyBlock) + num_tiles(tokens * group, width));
      grad_block(task, at, scratch, first, tokens, begin, FetchNext{&fetch});
    }
    for (int64_t m = 0; m < tokens * group; ++m)
      std::copy_n(scratch + at.grad_q + m * distance, width,
                  task.grad_q + (first + m / group) * task.q_stride + m % group * width);
  }
  for (int64_t j = 0; j < task.length; ++j) {
    const float* const row = scratch + at.block(j) + j % kKeyBlock * distance;
    std::copy_n(row + at.grad_keys, width, task.grad_k + j * task.kv_stride);
    std::copy_n(row + at.grad_values, width, task.grad_v + j * task.kv_stride);
  }
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cassert>

namespace ropd::kernels {

HWY_EXPORT(grad_task);

void attention_grad(std::span<float> grad_q, std::span<float> grad_k, std::span<float> grad_v,
                    std::span<const float> grad_out, std::span<const float> out,
                    std::span<const float> log_sum_exp, std::span<const float> q, std::span<const float> k,
                    std::span<const float> v, std::span<const int64_t> sequence_begins,
                    const AttentionShape& shape) {
  const int64_t heads = shape.num_heads, kv_heads = shape.num_kv_heads, width = shape.head_dim,
                group = heads / kv_heads;
  const int64_t sequences = static_cast<int64_t>(sequence_begins.size()) - 1;
  assert(grad_q.size() == q.size() && grad_out.size() == q.size() && out.size() == q.size());
  assert(grad_k.size() == k.size() && grad_v.size() == k.size() && v.size() == k.size());
  int64_t longest = 0, work = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t length =
        sequence_begins[static_cast<size_t>(s + 1)] - sequence_begins[static_cast<size_t>(s)];
    longest = std::max(longest, length);
    work += length * (length + 32) * heads * width / kProductsEach;
  }
  const int64_t units = sequences * kv_heads;
  const int64_t threads = static_cast<int64_t>(num_workers(static_cast<size_t>(units), work));
  const int64_t tokens_at_once = chunk_tokens(shape);
  const int64_t scratch_size =
      round_up(GradScratch(longest, std::min(tokens_at_once, longest) * group, width).total, 16);
  Buffer scratch(static_cast<size_t>(scratch_size * threads));
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(grad_task);
  const int64_t grain = std::max<int64_t>(1, std::min<int64_t>(units / (8 * threads), 16));
  share_out(units, grain, static_cast<size_t>(threads), work, [&](int64_t unit, size_t worker) {
    const int64_t sequence = unit / kv_heads, head = unit % kv_heads;
    const int64_t row = sequence_begins[static_cast<size_t>(sequence)], at = row * heads + head * group;
    const int64_t q_at = at * width, kv_at = (row * kv_heads + head) * width;
    GradTask task;
    task.grad_q = grad_q.data() + q_at;
    task.grad_out = grad_out.data() + q_at;
    task.out = out.data() + q_at;
    task.q = q.data() + q_at;
    task.log_sum_exp = log_sum_exp.data() + at;
    task.grad_k = grad_k.data() + kv_at;
    task.grad_v = grad_v.data() + kv_at;
    task.k = k.data() + kv_at;
    task.v = v.data() + kv_at;
    task.q_stride = heads * width;
    task.kv_stride = kv_heads * width;
    task.lse_stride = heads;
    task.length = sequence_begins[static_cast<size_t>(sequence + 1)] - row;
    task.group = group;
    task.head_dim = width;
    task.tokens_at_once = tokens_at_once;
    task.scale = shape.scale;
    function(task, scratch.data() + static_cast<int64_t>(worker) * scratch_size);
  });
}

}  // namespace ropd::kernels
#endif
