#include "kernels/attention.h"

#include "kernels/attention_blocks.h"
#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include "kernels/lanes.h"
#include "kernels/parallel.h"
#include "kernels/tile_product.h"
#include "tensor/buffer.h"

#ifndef ROPD_KERNELS_ATTENTION_TASK
#define ROPD_KERNELS_ATTENTION_TASK
namespace ropd::kernels {
namespace {

// The keys and values of one kv head of one sequence, in pages.
struct KeyValuePages {
  const void* base = nullptr;      // this kv head's part of page 0
  const int32_t* pages = nullptr;  // nullptr: page p of the sequence is page p of base
  DType dtype = DType::f32;
  int64_t page_stride = 0;  // elements between pages
  int64_t page_tokens = 0;
  int64_t value_stride = 0;  // elements between the rows of V
};

// Some query tokens of one sequence, all heads of one kv head.
struct ForwardTask {
  float* out = nullptr;          // [num_tokens, group, E], tokens out_stride apart
  float* log_sum_exp = nullptr;  // [num_tokens, group], tokens lse_stride apart; may be nullptr
  const float* q = nullptr;      // [num_tokens, group, E], tokens out_stride apart
  int64_t out_stride = 0, lse_stride = 0;
  int64_t num_tokens = 0, first_position = 0;
  int64_t group = 0, head_dim = 0;
  float scale = 1;
  KeyValuePages cache;
};

// Offsets into a thread's scratch, in floats. M rows = tokens of a chunk x heads of a kv head.
struct ForwardScratch {
  int64_t q, scores, outputs, sums, maxima, keys, values, total;
  ForwardScratch(int64_t rows, int64_t head_dim) {
    const int64_t padded = round_up(head_dim, 16);
    q = 0;                                       // [M, E]
    scores = q + round_up(rows * head_dim, 16);  // [M, 32]
    outputs = scores + rows * kKeyBlock;         // [M, padded E]
    sums = outputs + rows * padded;              // [M, 16]
    maxima = sums + rows * 16;                   // [M]
    keys = maxima + round_up(rows, 16);          // [E, 32], widened from a page
    values = keys + head_dim * kKeyBlock;        // [32, padded E], widened from a page
    total = values + kKeyBlock * padded;
  }
};

}  // namespace
}  // namespace ropd::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

// One row and one key block of the online softmax: scores [32] become weights exp(s - max); what the row has
// summed so far is rescaled when its maximum grows (and otherwise not touched: a factor of exp(0) = 1 would
// change nothing).
[[gnu::flatten]] HWY_INLINE void softmax_row(float* scores, float& maximum_so_far, float* sums,
                                             float* outputs, int64_t width, int64_t visible, float scale) {
  const Lanes scales = broadcast(scale);
  Lanes first = load(scores) * scales, second = load(scores + kLanes) * scales;
  if (visible < kKeyBlock) {
    store(first, scores);
    store(second, scores + kLanes);
    std::fill(scores + visible, scores + kKeyBlock, -std::numeric_limits<float>::infinity());
    first = load(scores);
    second = load(scores + kLanes);
  }
  const float block_maximum = maximum(max(first, second));
  Lanes sum_lanes = load(sums);
  if (block_maximum > maximum_so_far) {
    if (maximum_so_far != -std::numeric_limits<float>::infinity()) {  // in the first block all is 0
      const Lanes factor = broadcast(kernels::exp(maximum_so_far - block_maximum));
      sum_lanes = sum_lanes * factor;
      for (int64_t e = 0; e < width; e += kLanes) store(load(outputs + e) * factor, outputs + e);
    }
    maximum_so_far = block_maximum;
  }
  const Lanes center = broadcast(maximum_so_far);
  first = exp(first - center);
  second = exp(second - center);
  store(first, scores);
  store(second, scores + kLanes);
  store(sum_lanes + first + second, sums);
}

// A block of a page widened to f32, the rows of V padded with zeros.
template <class Element>
void stage_block(float* keys, float* values, const Element* block_keys, const Element* block_values,
                 int64_t head_dim) {
  const int64_t padded = round_up(head_dim, kLanes);
  for (int64_t i = 0; i < head_dim * kKeyBlock; i += kWidth)
    hn::StoreU(load_widened(block_keys + i), FloatTag(), keys + i);
  for (int64_t j = 0; j < kKeyBlock; ++j) {
    const Element* from = block_values + j * head_dim;
    float* to = values + j * padded;
    int64_t e = 0;
    for (; e + kWidth <= head_dim; e += kWidth) hn::StoreU(load_widened(from + e), FloatTag(), to + e);
    for (; e < head_dim; ++e) {
      if constexpr (sizeof(Element) == 2)
        to[e] = bf16_to_float(from[e]);
      else
        to[e] = from[e];
    }
    for (; e < padded; ++e) to[e] = 0.0f;
  }
}

// The tile function of every form of attention: all key blocks for the rows of a task.
template <class Element>
void attend(const ForwardTask& task, float* scratch) {
  const KeyValuePages& cache = task.cache;
  const int64_t width = task.head_dim, group = task.group, rows = task.num_tokens * group;
  const int64_t padded = round_up(width, kLanes);
  const ForwardScratch at(rows, width);
  float *const q = scratch + at.q, *const scores = scratch + at.scores, *const outputs = scratch + at.outputs;
  float *const sums = scratch + at.sums, *const maxima = scratch + at.maxima;
  for (int64_t t = 0; t < task.num_tokens; ++t)
    std::copy_n(task.q + t * task.out_stride, group * width, q + t * group * width);
  std::fill_n(outputs, rows * padded, 0.0f);
  std::fill_n(sums, rows * kLanes, 0.0f);
  std::fill_n(maxima, rows, -std::numeric_limits<float>::infinity());

  // Widening a bf16 block pays when many rows use it.
  const bool is_staged = cache.value_stride % kWidth != 0 || (sizeof(Element) == 2 && rows > 8);
  // A decoding step is bound by memory, and blocks of scattered pages are too short for the processor to
  // guess what comes next.
  const bool is_read_once = !is_staged && rows <= 16;
  const int64_t last_position = task.first_position + task.num_tokens - 1;
  const int64_t block_elements = kKeyBlock * (width + cache.value_stride);
  const auto block_at = [&](int64_t position) {
    const int64_t page = position / cache.page_tokens, block = position % cache.page_tokens / kKeyBlock;
    return static_cast<const Element*>(cache.base) +
           (cache.pages ? cache.pages[page] : page) * cache.page_stride + block * block_elements;
  };
  for (int64_t begin = 0; begin <= last_position; begin += kKeyBlock) {
    const Element* const block_keys = block_at(begin);
    const Element* const block_values = block_keys + width * kKeyBlock;
    const bool is_fetching = is_read_once && begin + kKeyBlock <= last_position;
    const FetchAhead next_block{is_fetching ? block_at(begin + kKeyBlock) - block_keys : 0};
    const int64_t first_row = std::max<int64_t>(0, begin - task.first_position) * group;
    const int64_t live = rows - first_row, keys = std::min(kKeyBlock, last_position - begin + 1);
    const StridedRows query_rows{q + first_row * width, width, 1};
    float* const live_scores = scores + first_row * kKeyBlock;
    float* const live_outputs = outputs + first_row * padded;
    if (is_staged) {
      stage_block(scratch + at.keys, scratch + at.values, block_keys, block_values, width);
      product(live_scores, kKeyBlock, query_rows, scratch + at.keys, kKeyBlock, live, kKeyBlock, width,
              false);
    } else if (is_fetching) {
      product(live_scores, kKeyBlock, query_rows, block_keys, kKeyBlock, live, kKeyBlock, width, false,
              next_block);
    } else {
      product(live_scores, kKeyBlock, query_rows, block_keys, kKeyBlock, live, kKeyBlock, width, false);
    }
    for (int64_t m = first_row; m < rows; ++m)
      softmax_row(scores + m * kKeyBlock, maxima[m], sums + m * kLanes, outputs + m * padded, padded,
                  task.first_position + m / group - begin + 1, task.scale);
    const StridedRows weights{live_scores, kKeyBlock, 1};
    if (is_staged)
      product(live_outputs, padded, weights, scratch + at.values, padded, live, padded, keys, true);
    else if (is_fetching)
      product(live_outputs, padded, weights, block_values, cache.value_stride, live, cache.value_stride, keys,
              true, next_block);
    else
      product(live_outputs, padded, weights, block_values, cache.value_stride, live, cache.value_stride, keys,
              true);
  }

  for (int64_t m = 0; m < rows; ++m) {
    const int64_t token = m / group, head = m % group;
    const float total = sum(load(sums + m * kLanes));
    const Lanes inverse = broadcast(1.0f / total);
    float* const out = task.out + token * task.out_stride + head * width;
    for_lanes(width,
              [&](int64_t e, int64_t n) { store(load(outputs + m * padded + e) * inverse, out + e, n); });
    if (task.log_sum_exp) task.log_sum_exp[token * task.lse_stride + head] = maxima[m] + kernels::log(total);
  }
}

void attend_task(const ForwardTask& task, float* scratch) {
  if (task.cache.dtype == DType::bf16)
    attend<Bf16>(task, scratch);
  else
    attend<float>(task, scratch);
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <omp.h>

#include <cassert>
#include <vector>

namespace ropd::kernels {

HWY_EXPORT(attend_task);

void transpose_keys(float* to, const float* from, int64_t from_stride, int64_t keys, int64_t head_dim) {
  if (keys < kKeyBlock) std::fill_n(to, head_dim * kKeyBlock, 0.0f);
  // Eight rows at a time: more would evict each other from the cache when rows are a power of two apart.
  for (int64_t first = 0; first < keys; first += 8) {
    const int64_t last = std::min(keys, first + 8);
    for (int64_t e = 0; e < head_dim; ++e)
      for (int64_t j = first; j < last; ++j) to[e * kKeyBlock + j] = from[j * from_stride + e];
  }
}

namespace {

// Runs every task on some thread; tasks are listed with the longest last, so they are taken from the end.
void run_tasks(const std::vector<ForwardTask>& tasks, int64_t max_rows, int64_t head_dim, int64_t work) {
  const int64_t count = static_cast<int64_t>(tasks.size());
  const bool is_parallel = work >= kWorthThreads && count > 1 && !omp_in_parallel();
  const int threads = is_parallel ? omp_get_max_threads() : 1;
  const int64_t scratch_size = round_up(ForwardScratch(max_rows, head_dim).total, 16);
  Buffer scratch(static_cast<size_t>(scratch_size * threads));
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(attend_task);
  const int64_t grain = std::max<int64_t>(1, std::min<int64_t>(count / (8 * threads), 16));
#pragma omp parallel for schedule(dynamic, grain) num_threads(threads) if (is_parallel)
  for (int64_t i = 0; i < count; ++i)
    function(tasks[static_cast<size_t>(count - 1 - i)], scratch.data() + omp_get_thread_num() * scratch_size);
}

}  // namespace

void attention(std::span<float> out, std::span<float> log_sum_exp, std::span<const float> q,
               std::span<const float> k, std::span<const float> v, std::span<const int64_t> sequence_begins,
               const AttentionShape& shape) {
  const int64_t heads = shape.num_heads, kv_heads = shape.num_kv_heads, width = shape.head_dim;
  const int64_t group = heads / kv_heads, padded = round_up(width, 16), tokens_at_once = chunk_tokens(shape);
  const int64_t sequences = static_cast<int64_t>(sequence_begins.size()) - 1;
  assert(heads == group * kv_heads && q.size() == out.size());
  assert(log_sum_exp.empty() ||
         static_cast<int64_t>(log_sum_exp.size()) * width == static_cast<int64_t>(q.size()));

  // Keys and values of every sequence in private pages of one block, transposed and padded as the tile
  // function likes them.
  struct Block {
    int64_t sequence, index, page;
  };
  std::vector<Block> blocks;
  std::vector<ForwardTask> tasks;
  int64_t num_pages = 0, max_tokens = 0, work = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t length =
        sequence_begins[static_cast<size_t>(s + 1)] - sequence_begins[static_cast<size_t>(s)];
    max_tokens = std::max(max_tokens, std::min(length, tokens_at_once));
    work += length * (length + 32) * heads * width;
    for (int64_t b = 0; b * kKeyBlock < length; ++b) blocks.push_back({s, b, num_pages++});
  }
  const int64_t page_stride = kKeyBlock * (width + padded), head_stride = num_pages * page_stride;
  Buffer pages(static_cast<size_t>(kv_heads * head_stride));
  const int64_t kv_stride = kv_heads * width;
  parallel_chunks(kv_heads * num_pages, 4, work, [&](int64_t unit_begin, int64_t unit_end) {
    for (int64_t unit = unit_begin; unit < unit_end; ++unit) {
      const Block& block = blocks[static_cast<size_t>(unit % num_pages)];
      const int64_t head = unit / num_pages;
      const int64_t sequence_begin = sequence_begins[static_cast<size_t>(block.sequence)];
      const int64_t length = sequence_begins[static_cast<size_t>(block.sequence + 1)] - sequence_begin;
      const int64_t keys = std::min(kKeyBlock, length - block.index * kKeyBlock);
      const int64_t from = (sequence_begin + block.index * kKeyBlock) * kv_stride + head * width;
      float* const to = pages.data() + head * head_stride + block.page * page_stride;
      transpose_keys(to, k.data() + from, kv_stride, keys, width);
      float* const values = to + kKeyBlock * width;
      std::fill_n(values, kKeyBlock * padded, 0.0f);
      for (int64_t j = 0; j < keys; ++j)
        std::copy_n(v.data() + from + j * kv_stride, width, values + j * padded);
    }
  });

  int64_t first_page = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t sequence_begin = sequence_begins[static_cast<size_t>(s)];
    const int64_t length = sequence_begins[static_cast<size_t>(s + 1)] - sequence_begin;
    for (int64_t first = 0; first < length; first += tokens_at_once)
      for (int64_t head = 0; head < kv_heads; ++head) {
        const int64_t row = sequence_begin + first, at = (row * heads + head * group);
        ForwardTask task;
        task.out = out.data() + at * width;
        task.log_sum_exp = log_sum_exp.empty() ? nullptr : log_sum_exp.data() + at;
        task.q = q.data() + at * width;
        task.out_stride = heads * width;
        task.lse_stride = heads;
        task.num_tokens = std::min(tokens_at_once, length - first);
        task.first_position = first;
        task.group = group;
        task.head_dim = width;
        task.scale = shape.scale;
        task.cache = {pages.data() + head * head_stride + first_page * page_stride,
                      nullptr,
                      DType::f32,
                      page_stride,
                      kKeyBlock,
                      padded};
        tasks.push_back(task);
      }
    first_page += (length + kKeyBlock - 1) / kKeyBlock;
  }
  run_tasks(tasks, max_tokens * group, width, work);
}

void write_kv_pages(const KvPageView& cache, std::span<const float> k, std::span<const float> v,
                    std::span<const PagedRows> groups) {
  const int64_t width = cache.head_dim, kv_stride = cache.num_kv_heads * width,
                head_elements = 2 * width * cache.page_tokens;
  const int64_t num_groups = static_cast<int64_t>(groups.size());
  std::vector<int64_t> first_rows(groups.size());
  int64_t rows = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    first_rows[g] = rows;
    rows += groups[g].num_rows;
  }
  assert(static_cast<int64_t>(k.size()) == rows * kv_stride && v.size() == k.size());
  const auto write = [&](auto* base, auto convert, int64_t unit) {
    const int64_t head = unit % cache.num_kv_heads;
    const PagedRows& group = groups[static_cast<size_t>(unit / cache.num_kv_heads)];
    const int64_t first_row = first_rows[static_cast<size_t>(unit / cache.num_kv_heads)];
    for (int64_t r = 0; r < group.num_rows; ++r) {
      const int64_t position = group.first_position + r, slot = position % kKeyBlock;
      const int64_t page = group.pages[position / cache.page_tokens];
      assert(page >= 0 && page < cache.num_pages);
      const int64_t block = position % cache.page_tokens / kKeyBlock;
      auto* const to =
          base + page * cache.page_elements() + head * head_elements + block * 2 * width * kKeyBlock;
      const int64_t from = (first_row + r) * kv_stride + head * width;
      auto* const values = to + kKeyBlock * width;
      for (int64_t e = 0; e < width; ++e)
        to[e * kKeyBlock + slot] = convert(k[static_cast<size_t>(from + e)]);
      for (int64_t e = 0; e < width; ++e)
        values[slot * width + e] = convert(v[static_cast<size_t>(from + e)]);
    }
  };
  parallel_chunks(num_groups * cache.num_kv_heads, 1, rows * kv_stride, [&](int64_t unit, int64_t) {
    if (cache.dtype == DType::bf16)
      write(static_cast<Bf16*>(cache.data), float_to_bf16, unit);
    else
      write(
          static_cast<float*>(cache.data), [](float x) { return x; }, unit);
  });
}

void paged_attention(std::span<float> out, std::span<const float> q, const KvPageView& cache,
                     std::span<const PagedRows> groups, const AttentionShape& shape) {
  const int64_t heads = shape.num_heads, kv_heads = shape.num_kv_heads, width = shape.head_dim;
  const int64_t group = heads / kv_heads, tokens_at_once = chunk_tokens(shape);
  assert(heads == group * kv_heads && kv_heads == cache.num_kv_heads && width == cache.head_dim);
  assert(cache.page_tokens % kKeyBlock == 0 && out.size() == q.size());
  std::vector<ForwardTask> tasks;
  int64_t row = 0, max_tokens = 0, work = 0;
  for (const PagedRows& rows : groups) {
    max_tokens = std::max(max_tokens, std::min(rows.num_rows, tokens_at_once));
    work += rows.num_rows * (rows.first_position + rows.num_rows) * heads * width;
    for (int64_t first = 0; first < rows.num_rows; first += tokens_at_once)
      for (int64_t head = 0; head < kv_heads; ++head) {
        const int64_t at = ((row + first) * heads + head * group) * width;
        ForwardTask task;
        task.out = out.data() + at;
        task.q = q.data() + at;
        task.out_stride = heads * width;
        task.num_tokens = std::min(tokens_at_once, rows.num_rows - first);
        task.first_position = rows.first_position + first;
        task.group = group;
        task.head_dim = width;
        task.scale = shape.scale;
        const std::byte* const base =
            static_cast<const std::byte*>(cache.data) +
            head * 2 * width * cache.page_tokens * static_cast<int64_t>(dtype_bytes(cache.dtype));
        task.cache = {base, rows.pages, cache.dtype, cache.page_elements(), cache.page_tokens, width};
        tasks.push_back(task);
      }
    row += rows.num_rows;
  }
  assert(row * heads * width == static_cast<int64_t>(out.size()));
  run_tasks(tasks, max_tokens * group, width, work);
}

}  // namespace ropd::kernels
#endif
