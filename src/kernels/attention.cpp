#include "kernels/attention.h"

#include "kernels/attention_blocks.h"
#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include "base/parallel.h"
#include "kernels/lanes.h"
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
  const void* next = nullptr;  // the first block of the task that follows, to be fetched; may be nullptr
};

// Offsets into a thread's scratch, in floats. M rows = tokens of a chunk x heads of a kv head; W =
// row_distance(E); S blocks are taken through each stage together.
struct ForwardScratch {
  int64_t q, scores, factors, outputs, sums, maxima, keys, values, total;
  ForwardScratch(int64_t rows, int64_t head_dim) {
    const int64_t distance = row_distance(head_dim), blocks = blocks_at_once(rows);
    q = 0;                                            // [M, W]
    scores = q + rows * distance;                     // [S, M, 32]
    factors = scores + blocks * rows * kKeyBlock;     // [S, M]
    outputs = factors + round_up(blocks * rows, 16);  // [M, W]
    sums = outputs + rows * distance;                 // [M, 16]
    maxima = sums + rows * 16;                        // [M]
    keys = maxima + round_up(rows, 16);               // [E, 32], widened from a page
    values = keys + head_dim * kKeyBlock;             // [32, W], widened from a page
    total = values + kKeyBlock * distance;
  }
  // With few rows a stage of one block is too short for the processor to overlap its chains; with many rows
  // several blocks would only leave the cache.
  static constexpr int64_t kFewRows = 16, kMaxBlocks = 4;
  // What tasks of up to max_rows rows need: the few rows of a small one take more blocks together.
  static int64_t largest(int64_t max_rows, int64_t head_dim) {
    return std::max(ForwardScratch(max_rows, head_dim).total,
                    ForwardScratch(std::min(max_rows, kFewRows), head_dim).total);
  }
  static constexpr int64_t blocks_at_once(int64_t rows) { return rows <= kFewRows ? kMaxBlocks : 1; }
};

}  // namespace
}  // namespace ropd::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

// x where the lane is among the first n, `other` elsewhere.
HWY_INLINE Lanes first_lanes(const Lanes& x, int64_t n, float other) {
  const FloatTag tag;
  return each_vector([&](int64_t i) HWY_ATTR {
    const int64_t rest = std::clamp<int64_t>(n - i * kWidth, 0, kWidth);
    return hn::IfThenElse(hn::FirstN(tag, static_cast<size_t>(rest)), x.vector[i], hn::Set(tag, other));
  });
}

// One row and one key block of the online softmax: scores [32] become weights exp(s - max). Returns the
// factor by which what the row has summed so far is to be rescaled: 1 unless its maximum has grown.
template <bool kAllVisible>
[[gnu::flatten]] HWY_INLINE float softmax_block(float* scores, float& maximum_so_far, Lanes& sums,
                                                int64_t visible, float scale) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const Lanes scales = broadcast(scale);
  Lanes first = load(scores) * scales, second = load(scores + kLanes) * scales;
  if constexpr (!kAllVisible) {
    first = first_lanes(first, visible, kMinusInfinity);
    second = first_lanes(second, visible - kLanes, kMinusInfinity);
  }
  const float block_maximum = maximum(max(first, second));
  float factor = 1.0f;
  if (block_maximum > maximum_so_far) {
    if (maximum_so_far != kMinusInfinity) {  // in the first block there is nothing yet
      factor = kernels::exp(maximum_so_far - block_maximum);
      sums = sums * broadcast(factor);
    }
    maximum_so_far = block_maximum;
  }
  const Lanes center = broadcast(maximum_so_far);
  first = first - center;
  second = second - center;
  if constexpr (kAllVisible) {
    first = exp(first);
    second = exp(second);
  } else {  // the exponential of -inf is 0, but a slow one
    first = first_lanes(exp(first_lanes(first, visible, 0.0f)), visible, 0.0f);
    second = visible > kLanes
                 ? first_lanes(exp(first_lanes(second, visible - kLanes, 0.0f)), visible - kLanes, 0.0f)
                 : broadcast(0.0f);
  }
  store(first, scores);
  store(second, scores + kLanes);
  sums = sums + first + second;
  return factor;
}

// A block of a page widened to f32, the rows of V padded with zeros.
template <class Element>
void stage_block(float* keys, float* values, const Element* block_keys, const Element* block_values,
                 int64_t head_dim) {
  const int64_t padded = round_up(head_dim, kWidth), distance = row_distance(head_dim);
  for (int64_t i = 0; i < head_dim * kKeyBlock; i += kWidth)
    hn::StoreU(load_widened(block_keys + i), FloatTag(), keys + i);
  for (int64_t j = 0; j < kKeyBlock; ++j) {
    const Element* from = block_values + j * head_dim;
    float* to = values + j * distance;
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

// The tile function of every form of attention: all key blocks for the rows of a task. A few blocks at a
// time go through three stages: scores, softmax, weighted values.
template <class Element>
class Attend {
 public:
  Attend(const ForwardTask& task, float* scratch)
      : task_(task),
        at_(task.num_tokens * task.group, task.head_dim),
        scratch_(scratch),
        width_(task.head_dim),
        distance_(row_distance(task.head_dim)),
        rows_(task.num_tokens * task.group),
        last_position_(task.first_position + task.num_tokens - 1),
        // Widening a bf16 block pays when many rows use it.
        is_staged_(task.cache.value_stride % kWidth != 0 || (sizeof(Element) == 2 && rows_ > 8)),
        // A decoding step is bound by memory, and blocks of scattered pages are too short for the processor
        // to guess what comes next.
        is_read_once_(!is_staged_ && rows_ <= ForwardScratch::kFewRows),
        columns_(round_up(task.head_dim, kWidth)),
        block_bytes_(kKeyBlock * (task.head_dim + task.cache.value_stride) *
                     static_cast<int64_t>(sizeof(Element))),
        is_far_(last_position_ / kKeyBlock * block_bytes_ > kWorthFetching) {}

  void run() {
    load_queries();
    // A staged block is there until the next one.
    const int64_t at_once = is_staged_ ? 1 : ForwardScratch::blocks_at_once(rows_);
    const Element* blocks[ForwardScratch::kMaxBlocks + 1];  // and the one that is read after them
    blocks[0] = next_block();
    for (int64_t begin = 0; begin <= last_position_; begin += at_once * kKeyBlock) {
      const int64_t count = std::min(at_once, (last_position_ - begin) / kKeyBlock + 1);
      for (int64_t b = 1; b <= count; ++b)
        blocks[b] =
            begin + b * kKeyBlock <= last_position_ ? next_block() : static_cast<const Element*>(task_.next);
      for (int64_t b = 0; b < count; ++b) find_scores(b, begin + b * kKeyBlock, blocks[b], blocks[b + 1]);
      int64_t row = 0;
      for (int64_t t = 0; t < task_.num_tokens; ++t)
        for (int64_t h = 0; h < task_.group; ++h, ++row)
          find_weights(row, task_.first_position + t - begin + 1, begin, count);
      for (int64_t b = 0; b < count; ++b) add_values(b, begin + b * kKeyBlock, blocks[b], blocks[b + 1]);
      blocks[0] = blocks[count];
    }
    store_results();
  }

 private:
  const ForwardTask& task_;
  const ForwardScratch at_;
  float* const scratch_;
  const int64_t width_, distance_, rows_, last_position_;
  const bool is_staged_, is_read_once_;
  const int64_t columns_;  // of V and of the outputs
  const int64_t block_bytes_;
  const bool is_far_;
  BlockFetch fetch_{nullptr, 0, 1};
  const float* q_ = nullptr;
  int64_t q_distance_ = 0;
  int64_t page_ = 0, page_position_ = 0;  // of the next block

  float* scores(int64_t block, int64_t row) {
    return scratch_ + at_.scores + (block * rows_ + row) * kKeyBlock;
  }
  float& factor(int64_t block, int64_t row) { return scratch_[at_.factors + block * rows_ + row]; }
  float* outputs(int64_t row) { return scratch_ + at_.outputs + row * distance_; }
  RowsOfBlock rows_of(int64_t begin) const { return {begin, task_.first_position, rows_, task_.group}; }

  // Walks through the pages without dividing by their size.
  const Element* next_block() {
    const KeyValuePages& cache = task_.cache;
    const Element* const block = static_cast<const Element*>(cache.base) +
                                 (cache.pages ? cache.pages[page_] : page_) * cache.page_stride +
                                 page_position_ * (width_ + cache.value_stride);
    page_position_ += kKeyBlock;
    if (page_position_ == cache.page_tokens) {
      page_position_ = 0;
      ++page_;
    }
    return block;
  }

  void load_queries() {
    q_ = task_.q;
    q_distance_ = width_;
    if (task_.num_tokens == 1) return;
    q_ = scratch_ + at_.q;
    q_distance_ = distance_;
    float* to = scratch_ + at_.q;
    for (int64_t t = 0; t < task_.num_tokens; ++t)
      for (int64_t h = 0; h < task_.group; ++h, to += distance_) {
        const float* const from = task_.q + t * task_.out_stride + h * width_;
        for_lanes(width_, [=](int64_t i, int64_t n) { store(load(from + i, n), to + i, n); });
      }
  }

  void find_scores(int64_t block, int64_t begin, const Element* keys, const Element* next) {
    const RowsOfBlock rows = rows_of(begin);
    if (is_read_once_) {
      product(scores(block, rows.first), kKeyBlock, {q_ + rows.first * q_distance_, q_distance_, 1}, keys,
              kKeyBlock, rows.count(), kKeyBlock, width_, false, FetchFurther{next ? next - keys : 0});
      return;
    }
    fetch_ = BlockFetch(next, block_bytes_,
                        num_tiles(rows.count(), kKeyBlock) + num_tiles(rows.count(), columns_));
    if (is_staged_)
      stage_block(scratch_ + at_.keys, scratch_ + at_.values, keys, keys + width_ * kKeyBlock, width_);
    const auto multiply = [&](const auto* from, auto fetch) {
      rows.for_halves([&](int64_t row, int64_t count, int64_t n) {
        product(scores(block, row), kKeyBlock, {q_ + row * q_distance_, q_distance_, 1}, from, kKeyBlock,
                count, n, width_, false, fetch);
      });
    };
    with_fetch(multiply, scratch_ + at_.keys, keys);
  }

  // `visible` counts from the first of the blocks.
  void find_weights(int64_t row, int64_t visible, int64_t begin, int64_t blocks) {
    float* const row_sums = scratch_ + at_.sums + row * kLanes;
    float& maximum_so_far = scratch_[at_.maxima + row];
    Lanes sums = begin == 0 ? broadcast(0.0f) : load(row_sums);
    if (begin == 0) maximum_so_far = -std::numeric_limits<float>::infinity();
    for (int64_t b = 0; b < blocks && visible > 0; ++b, visible -= kKeyBlock)
      factor(b, row) = visible >= kKeyBlock
                           ? softmax_block<true>(scores(b, row), maximum_so_far, sums, visible, task_.scale)
                           : softmax_block<false>(scores(b, row), maximum_so_far, sums, visible, task_.scale);
    store(sums, row_sums);
  }

  void add_values(int64_t block, int64_t begin, const Element* keys, const Element* next) {
    const Element* const values = keys + width_ * kKeyBlock;
    const RowsOfBlock rows = rows_of(begin);
    const int64_t depth = std::min(kKeyBlock, last_position_ - begin + 1);
    for (int64_t m = rows.first; m < rows.end; ++m)
      if (factor(block, m) != 1.0f)
        for (int64_t e = 0; e < columns_; e += kWidth)
          hn::StoreU(hn::Mul(hn::LoadU(FloatTag(), outputs(m) + e), hn::Set(FloatTag(), factor(block, m))),
                     FloatTag(), outputs(m) + e);
    const bool add = begin > 0;
    if (is_read_once_) {
      product(outputs(rows.first), distance_, {scores(block, rows.first), kKeyBlock, 1}, values,
              task_.cache.value_stride, rows.count(), columns_, depth, add,
              FetchFurther{next ? next - keys : 0});
      return;
    }
    const int64_t value_distance = is_staged_ ? distance_ : task_.cache.value_stride;
    const auto multiply = [&](const auto* from, auto fetch) {
      rows.for_halves([&](int64_t row, int64_t count, int64_t n) {
        product(outputs(row), distance_, {scores(block, row), kKeyBlock, 1}, from, value_distance, count,
                columns_, std::min(n, depth), add, fetch);
      });
    };
    with_fetch(multiply, scratch_ + at_.values, values);
  }

  // Calls multiply(block, fetch) with the block where it is read, staged or in its page.
  template <class Multiply>
  void with_fetch(const Multiply& multiply, const float* staged, const Element* in_page) {
    const auto on = [&](const auto* from) {
      if (is_far_)
        multiply(from, FetchNext{&fetch_});
      else
        multiply(from, NoFetch());
    };
    if (is_staged_)
      on(staged);
    else
      on(in_page);
  }

  void store_results() {
    int64_t token = 0, head = 0;
    for (int64_t m = 0; m < rows_; ++m) {
      const float total = sum(load(scratch_ + at_.sums + m * kLanes));
      const Lanes inverse = broadcast(1.0f / total);
      float* const out = task_.out + token * task_.out_stride + head * width_;
      for_lanes(width_, [&](int64_t e, int64_t n) { store(load(outputs(m) + e) * inverse, out + e, n); });
      if (task_.log_sum_exp)
        task_.log_sum_exp[token * task_.lse_stride + head] = scratch_[at_.maxima + m] + kernels::log(total);
      if (++head == task_.group) {
        head = 0;
        ++token;
      }
    }
  }
};

void attend_task(const ForwardTask& task, float* scratch) {
  if (task.cache.dtype == DType::bf16)
    Attend<Bf16>(task, scratch).run();
  else
    Attend<float>(task, scratch).run();
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cassert>
#include <functional>
#include <vector>

namespace ropd::kernels {

HWY_EXPORT(attend_task);

void transpose_keys(float* to, const float* from, int64_t from_stride, int64_t first, int64_t keys,
                    int64_t head_dim) {
  to += first;
  // Eight rows at a time: more would evict each other from the cache when rows are a power of two apart.
  for (int64_t begin = 0; begin < keys; begin += 8) {
    const int64_t end = std::min(keys, begin + 8);
    for (int64_t e = 0; e < head_dim; ++e)
      for (int64_t j = begin; j < end; ++j) to[e * kKeyBlock + j] = from[j * from_stride + e];
  }
}

namespace {

// Runs every task on some thread, behind prepare(its index) there; tasks are listed with the longest last, so
// they are taken from the end.
template <class Prepare>
void run_tasks(const std::vector<ForwardTask>& tasks, int64_t max_rows, int64_t head_dim, int64_t work,
               const Prepare& prepare) {
  const int64_t count = static_cast<int64_t>(tasks.size());
  const int64_t threads = static_cast<int64_t>(num_workers(static_cast<size_t>(count), work));
  const int64_t scratch_size = round_up(ForwardScratch::largest(max_rows, head_dim), 16);
  Buffer scratch(static_cast<size_t>(scratch_size * threads));
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(attend_task);
  const int64_t grain = std::max<int64_t>(1, std::min<int64_t>(count / (8 * threads), 16));
  share_out(count, grain, static_cast<size_t>(threads), work, [&](int64_t i, size_t worker) {
    const int64_t task = count - 1 - i;
    prepare(task);
    function(tasks[static_cast<size_t>(task)], scratch.data() + static_cast<int64_t>(worker) * scratch_size);
  });
}

// Stores k and v of one kv head [num_rows, E], rows kv_stride apart, at the positions of the rows.
template <class Element, class Convert>
void write_head(const KvPageView& cache, const PagedRows& rows, int64_t head, const float* k, const float* v,
                const Convert& convert) {
  const int64_t width = cache.head_dim, kv_stride = cache.num_kv_heads * width;
  for (int64_t r = 0; r < rows.num_rows; ++r, k += kv_stride, v += kv_stride) {
    const int64_t position = rows.first_position + r, slot = position % kKeyBlock;
    const int64_t page = rows.pages[position / cache.page_tokens];
    assert(page >= 0 && page < cache.num_pages);
    const int64_t block = position % cache.page_tokens / kKeyBlock;
    Element* const to = static_cast<Element*>(cache.data) + page * cache.page_elements() +
                        2 * width * (head * cache.page_tokens + block * kKeyBlock);
    for (int64_t e = 0; e < width; ++e) to[e * kKeyBlock + slot] = convert(k[e]);
    for (int64_t e = 0; e < width; ++e) to[(kKeyBlock + slot) * width + e] = convert(v[e]);
  }
}

}  // namespace

void attention(std::span<float> out, std::span<float> log_sum_exp, std::span<const float> q,
               std::span<const float> k, std::span<const float> v, std::span<const int64_t> sequence_begins,
               const AttentionShape& shape, std::span<const SharedKeys> shared) {
  const int64_t heads = shape.num_heads, kv_heads = shape.num_kv_heads, width = shape.head_dim;
  const int64_t group = heads / kv_heads, tokens_at_once = chunk_tokens(shape);
  const int64_t distance = row_distance(width);
  const int64_t sequences = static_cast<int64_t>(sequence_begins.size()) - 1;
  assert(heads == group * kv_heads && q.size() == out.size());
  assert(log_sum_exp.empty() ||
         static_cast<int64_t>(log_sum_exp.size()) * width == static_cast<int64_t>(q.size()));
  assert(shared.empty() || static_cast<int64_t>(shared.size()) == sequences);
  const auto shared_of = [&](int64_t s) {
    return shared.empty() ? SharedKeys() : shared[static_cast<size_t>(s)];
  };
  const auto length_of = [&](int64_t s) {  // with what is shared
    return shared_of(s).length + sequence_begins[static_cast<size_t>(s + 1)] -
           sequence_begins[static_cast<size_t>(s)];
  };

  // Keys and values of every sequence in private pages of one block, transposed and padded as the tile
  // function likes them.
  struct Block {
    int64_t sequence, index, page;
  };
  std::vector<Block> blocks;
  std::vector<ForwardTask> tasks;
  int64_t num_pages = 0, max_tokens = 0, work = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t length = length_of(s), own = length - shared_of(s).length;
    max_tokens = std::max(max_tokens, std::min(own, tokens_at_once));
    work += own * (length + 32) * heads * width / kProductsEach;
    for (int64_t b = 0; b * kKeyBlock < length; ++b) blocks.push_back({s, b, num_pages++});
  }
  const int64_t page_stride = kKeyBlock * (width + distance), head_stride = num_pages * page_stride;
  Buffer pages(static_cast<size_t>(kv_heads * head_stride));
  const int64_t kv_stride = kv_heads * width;
  parallel_chunks(kv_heads * num_pages, 4, work, [&](int64_t unit_begin, int64_t unit_end) {
    for (int64_t unit = unit_begin; unit < unit_end; ++unit) {
      const Block& block = blocks[static_cast<size_t>(unit % num_pages)];
      const int64_t head = unit / num_pages;
      const SharedKeys before = shared_of(block.sequence);
      const int64_t own_at = sequence_begins[static_cast<size_t>(block.sequence)] * kv_stride;
      const SplitRows keys(before.k, k.data() + own_at, before.length, shape, head),
          values(before.v, v.data() + own_at, before.length, shape, head);
      const int64_t first = block.index * kKeyBlock,
                    last = std::min(first + kKeyBlock, length_of(block.sequence));
      float* const to = pages.data() + head * head_stride + block.page * page_stride;
      float* const values_to = to + kKeyBlock * width;
      if (last - first < kKeyBlock) std::fill_n(to, kKeyBlock * width, 0.0f);
      keys.for_parts(first, last, [&](int64_t begin, int64_t count) {
        transpose_keys(to, keys.row(begin), kv_stride, begin - first, count, width);
      });
      for (int64_t j = first; j < last; ++j) {  // the values of keys that do not exist are not read
        float* const row = values_to + (j - first) * distance;
        std::copy_n(values.row(j), width, row);
        std::fill_n(row + width, distance - width, 0.0f);
      }
    }
  });

  int64_t first_page = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t before = shared_of(s).length, length = length_of(s);
    int64_t tokens = 0;
    for (int64_t first = before; first < length; first += tokens) {
      tokens = chunk_at(first, length, tokens_at_once);
      for (int64_t head = 0; head < kv_heads; ++head) {
        const int64_t row = sequence_begins[static_cast<size_t>(s)] + first - before,
                      at = (row * heads + head * group);
        ForwardTask task;
        task.out = out.data() + at * width;
        task.log_sum_exp = log_sum_exp.empty() ? nullptr : log_sum_exp.data() + at;
        task.q = q.data() + at * width;
        task.out_stride = heads * width;
        task.lse_stride = heads;
        task.num_tokens = tokens;
        task.first_position = first;
        task.group = group;
        task.head_dim = width;
        task.scale = shape.scale;
        task.cache = {pages.data() + head * head_stride + first_page * page_stride,
                      nullptr,
                      DType::f32,
                      page_stride,
                      kKeyBlock,
                      distance};
        tasks.push_back(task);
      }
    }
    first_page += (length + kKeyBlock - 1) / kKeyBlock;
  }
  run_tasks(tasks, max_tokens * group, width, work, [](int64_t) {});
}

void paged_attention(std::span<float> out, const KvPageView& cache, std::span<const float> q,
                     std::span<const float> k, std::span<const float> v, std::span<const PagedRows> groups,
                     const AttentionShape& shape) {
  const int64_t heads = shape.num_heads, kv_heads = shape.num_kv_heads, width = shape.head_dim;
  const int64_t group = heads / kv_heads, tokens_at_once = chunk_tokens(shape);
  assert(heads == group * kv_heads && kv_heads == cache.num_kv_heads && width == cache.head_dim);
  assert(cache.page_tokens % kKeyBlock == 0 && out.size() == q.size());
  constexpr int64_t kWritingEach = 16;  // operations for an element: it has a cache line of its own in K
  std::vector<ForwardTask> tasks;
  std::vector<int64_t> first_rows;
  tasks.reserve(groups.size() * static_cast<size_t>(kv_heads));
  const std::byte* previous = nullptr;
  int64_t row = 0, max_tokens = 0, work = 0;
  for (const PagedRows& rows : groups) {
    max_tokens = std::max(max_tokens, std::min(rows.num_rows, tokens_at_once));
    work += rows.num_rows * (rows.first_position + rows.num_rows) * heads * width / kProductsEach +
            rows.num_rows * kv_heads * width * kWritingEach;
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
        task.next = previous;  // tasks are taken from the end
        previous = base + rows.pages[0] * cache.page_bytes();
        tasks.push_back(task);
      }
    first_rows.push_back(row);
    row += rows.num_rows;
  }
  assert(row * heads * width == static_cast<int64_t>(out.size()));
  assert(row * kv_heads * width == static_cast<int64_t>(k.size()) && v.size() == k.size());

  const auto write = [&](int64_t unit) {  // of [groups][kv heads]
    const size_t index = static_cast<size_t>(unit / kv_heads);
    const int64_t head = unit % kv_heads, from = (first_rows[index] * kv_heads + head) * width;
    if (cache.dtype == DType::bf16)
      write_head<Bf16>(cache, groups[index], head, k.data() + from, v.data() + from, float_to_bf16);
    else
      write_head<float>(cache, groups[index], head, k.data() + from, v.data() + from, std::identity());
  };
  // A task that attends for all rows of its group and head needs no other to have written. That a line of the
  // cache is fetched for every key's element then happens where it is needed next, and on all threads.
  const int64_t units = static_cast<int64_t>(groups.size()) * kv_heads;
  const bool is_by_task = units == static_cast<int64_t>(tasks.size());
  if (!is_by_task)
    parallel_chunks(units, 1, row * kv_heads * width, [&](int64_t unit, int64_t) { write(unit); });
  run_tasks(tasks, max_tokens * group, width, work, [&](int64_t task) {
    if (is_by_task) write(task);
  });
}

}  // namespace ropd::kernels
#endif
