#include "kernels/vocab_head.h"

#include <algorithm>
#include <cassert>

#include "base/parallel.h"
#include "kernels/vocab_rows.h"
#include "tensor/buffer.h"

namespace ropd::kernels {
namespace {

// Rows that share one pass over the head. More rows read the head less often; their block of logits should
// stay in the cache.
constexpr int64_t kScoreRows = 512;
// With a packed head, all of whose logits exist: 64 rows of a large vocabulary.
constexpr size_t kScoreScratchBytes = size_t{40} << 20;

WeightView rows_of(const WeightView& weight, int64_t begin, int64_t count) {
  const auto* data = static_cast<const std::byte*>(weight.data);
  return {data + begin * weight.columns * static_cast<int64_t>(dtype_bytes(weight.dtype)), weight.dtype,
          count, weight.columns};
}

// Collects the scores of rows [first, first + count) from their logits, which arrive block by block.
class RowScorer {
 public:
  RowScorer(VocabularyScores& scores, const ScoreRequest& request, int64_t first, int64_t count)
      : scores_(scores), request_(request), first_(first), accumulators_(static_cast<size_t>(count)) {
    const size_t k = static_cast<size_t>(request.top_k);
    for (int64_t r = first; r < first + count; ++r) {
      const size_t at = static_cast<size_t>(r) * k;
      tops_.emplace_back(std::span(scores.top_logprobs).subspan(at, k),
                         std::span(scores.top_ids).subspan(at, k));
    }
  }

  // The entries [begin, begin + logits.size()) of a row, as raw logits; begin is a multiple of kVocabBlock.
  void add(int64_t row, std::span<float> logits, int64_t begin) {
    divide_by_temperature(logits, request_.temperature);
    for (int64_t at = 0; at < static_cast<int64_t>(logits.size()); at += kVocabBlock) {
      const auto block =
          logits.subspan(static_cast<size_t>(at))
              .first(std::min(logits.size() - static_cast<size_t>(at), static_cast<size_t>(kVocabBlock)));
      const float block_max = accumulators_[static_cast<size_t>(row)].add(block, request_.with_entropy);
      tops_[static_cast<size_t>(row)].add(block, static_cast<int32_t>(begin + at), block_max);
    }
    if (request_.given_begins.empty()) return;
    const int64_t end = begin + static_cast<int64_t>(logits.size());
    for (int64_t i = given_begin(row); i < given_begin(row + 1); ++i) {
      const int64_t id = request_.given_ids[static_cast<size_t>(i)];
      if (id >= begin && id < end)
        scores_.given_logprobs[static_cast<size_t>(i)] = logits[static_cast<size_t>(id - begin)];
    }
  }

  // After the last block: what was collected are logits; log-probabilities need the finished log-sum-exp.
  void finish(int64_t row) {
    const RowStatistics statistics = accumulators_[static_cast<size_t>(row)].result();
    const float log_sum_exp = statistics.log_sum_exp;
    scores_.log_sum_exp[static_cast<size_t>(first_ + row)] = log_sum_exp;
    if (request_.with_entropy) scores_.entropy[static_cast<size_t>(first_ + row)] = statistics.entropy;
    for (int64_t j = 0; j < request_.top_k; ++j)
      scores_.top_logprobs[static_cast<size_t>((first_ + row) * request_.top_k + j)] -= log_sum_exp;
    if (request_.given_begins.empty()) return;
    for (int64_t i = given_begin(row); i < given_begin(row + 1); ++i)
      scores_.given_logprobs[static_cast<size_t>(i)] -= log_sum_exp;
  }

 private:
  VocabularyScores& scores_;
  const ScoreRequest& request_;
  int64_t first_;
  std::vector<RowAccumulator> accumulators_;
  std::vector<TopEntries> tops_;

  int64_t given_begin(int64_t row) const { return request_.given_begins[static_cast<size_t>(first_ + row)]; }
};

VocabularyScores empty_scores(int64_t rows, int64_t vocabulary, const ScoreRequest& request) {
  assert(request.top_k >= 0 && request.top_k <= vocabulary);
  assert(request.given_begins.empty() || static_cast<int64_t>(request.given_begins.size()) == rows + 1);
  static_cast<void>(vocabulary);
  VocabularyScores scores;
  scores.log_sum_exp.resize(static_cast<size_t>(rows));
  if (request.with_entropy) scores.entropy.resize(static_cast<size_t>(rows));
  scores.top_ids.resize(static_cast<size_t>(rows * request.top_k));
  scores.top_logprobs.resize(scores.top_ids.size());
  if (!request.given_begins.empty()) scores.given_logprobs.resize(request.given_ids.size());
  return scores;
}

// Scores rows in chunks of at most max_rows, each walking the vocabulary in blocks of block_entries (a
// multiple of kVocabBlock). product(logits, first row, rows, first entry, entries) fills logits [rows,
// entries].
template <class LogitProduct>
VocabularyScores score_blocks(int64_t rows, int64_t vocabulary, int64_t max_rows, int64_t block_entries,
                              const ScoreRequest& request, const LogitProduct& product) {
  VocabularyScores scores = empty_scores(rows, vocabulary, request);
  Buffer logits(static_cast<size_t>(std::min(max_rows, rows) * std::min(block_entries, vocabulary)));
  for (int64_t first = 0; first < rows; first += max_rows) {
    const int64_t count = std::min(max_rows, rows - first);
    RowScorer scorer(scores, request, first, count);
    for (int64_t begin = 0; begin < vocabulary; begin += block_entries) {
      const int64_t entries = std::min(block_entries, vocabulary - begin);
      const auto block = logits.span().first(static_cast<size_t>(count * entries));
      product(block, first, count, begin, entries);
      parallel_chunks(count, 1, count * entries, [&](int64_t row, int64_t) {
        scorer.add(row, block.subspan(static_cast<size_t>(row * entries), static_cast<size_t>(entries)),
                   begin);
      });
    }
    for (int64_t row = 0; row < count; ++row) scorer.finish(row);
  }
  return scores;
}

int64_t rows_within(size_t scratch_bytes, int64_t bytes_per_row) {
  return std::max<int64_t>(1, static_cast<int64_t>(scratch_bytes) / bytes_per_row);
}

// Rows of a chunk when all chunks are to be about as large.
int64_t even_rows(int64_t rows, int64_t most) {
  const int64_t chunks = std::max<int64_t>(1, (rows + most - 1) / most);
  return (rows + chunks - 1) / chunks;
}

// Rows that are gone through at a time.
struct Chunk {
  int64_t first, count;
  std::vector<int64_t> sequence_begins;  // among them
};

// Chunks of at most `most` rows. With bf16_tiles a sequence is torn apart between two blocks only.
std::vector<Chunk> chunks_of(int64_t rows, int64_t most, Precision precision,
                             std::span<const int64_t> sequence_begins) {
  const bool has_blocks = precision == Precision::bf16_tiles;
  const int64_t all[] = {0, rows};
  if (sequence_begins.empty()) sequence_begins = all;
  assert(sequence_begins.front() == 0 && sequence_begins.back() == rows);
  most = std::max(even_rows(rows, most), has_blocks ? kTokenBlock : 1);
  std::vector<Chunk> chunks;
  for (int64_t first = 0; first < rows;) {
    int64_t end = std::min(rows, first + most);
    const auto next = std::upper_bound(sequence_begins.begin(), sequence_begins.end(), end);
    if (has_blocks) end -= (end - next[-1]) % kTokenBlock;
    Chunk chunk{first, end - first, {0}};
    for (auto begin = std::upper_bound(sequence_begins.begin(), next, first); begin != next && *begin < end;
         ++begin)
      chunk.sequence_begins.push_back(*begin - first);
    chunk.sequence_begins.push_back(end - first);
    chunks.push_back(std::move(chunk));
    first = end;
  }
  return chunks;
}

void add_head_gradients(std::span<float> grad_hidden, std::span<float> grad_weight,
                        std::span<const float> grad_logits, std::span<const float> hidden,
                        const WeightView& head, Precision precision, const Chunk& chunk) {
  const size_t at = static_cast<size_t>(chunk.first * head.columns),
               size = static_cast<size_t>(chunk.count * head.columns);
  if (!grad_hidden.empty()) matmul_grad_x(grad_hidden.subspan(at, size), grad_logits, head, precision);
  if (!grad_weight.empty())
    matmul_grad_weight(grad_weight, grad_logits, hidden.subspan(at, size), head.rows, head.columns, precision,
                       chunk.sequence_begins);
}

int64_t most_rows(std::span<const Chunk> chunks) {
  int64_t most = 0;
  for (const Chunk& chunk : chunks) most = std::max(most, chunk.count);
  return most;
}

}  // namespace

VocabularyScores score_vocabulary(std::span<const float> hidden, const WeightView& head, Precision precision,
                                  const ScoreRequest& request) {
  const int64_t rows = static_cast<int64_t>(hidden.size()) / head.columns;
  return score_blocks(
      rows, head.rows, kScoreRows, kVocabBlock, request,
      [&](std::span<float> logits, int64_t first, int64_t count, int64_t begin, int64_t entries) {
        matmul(logits,
               hidden.subspan(static_cast<size_t>(first * head.columns),
                              static_cast<size_t>(count * head.columns)),
               rows_of(head, begin, entries), precision);
      });
}

VocabularyScores score_vocabulary(std::span<const float> hidden, const PackedWeight& head,
                                  const ScoreRequest& request) {
  const int64_t rows = static_cast<int64_t>(hidden.size()) / head.columns();
  // A packed head is multiplied as a whole, so the rows bound the scratch.
  return score_blocks(rows, head.rows(), rows_within(kScoreScratchBytes, head.rows() * 4),
                      (head.rows() + kVocabBlock - 1) / kVocabBlock * kVocabBlock, request,
                      [&](std::span<float> logits, int64_t first, int64_t count, int64_t, int64_t) {
                        matmul(logits,
                               hidden.subspan(static_cast<size_t>(first * head.columns()),
                                              static_cast<size_t>(count * head.columns())),
                               head);
                      });
}

void vocab_head_grad(std::span<float> grad_hidden, std::span<float> grad_weight,
                     std::span<const float> hidden, const WeightView& head, Precision precision,
                     std::span<const int64_t> sequence_begins, size_t scratch_bytes,
                     const RowObjective& row_objective) {
  const int64_t width = head.columns, vocabulary = head.rows,
                rows = static_cast<int64_t>(hidden.size()) / width;
  const auto chunks = chunks_of(rows, rows_within(scratch_bytes, vocabulary * 4), precision, sequence_begins);
  Buffer scratch(static_cast<size_t>(most_rows(chunks) * vocabulary));
  for (const Chunk& chunk : chunks) {
    const auto logits = scratch.span().first(static_cast<size_t>(chunk.count * vocabulary));
    matmul(logits,
           hidden.subspan(static_cast<size_t>(chunk.first * width), static_cast<size_t>(chunk.count * width)),
           head, precision);
    parallel_chunks(chunk.count, 1, chunk.count * vocabulary, [&](int64_t row, int64_t) {
      row_objective(chunk.first + row,
                    logits.subspan(static_cast<size_t>(row * vocabulary), static_cast<size_t>(vocabulary)));
    });
    add_head_gradients(grad_hidden, grad_weight, logits, hidden, head, precision, chunk);
  }
}

void vocab_head_pairs(std::span<float> grad_hidden, std::span<float> grad_weight, const HeadInput& student,
                      const HeadInput& teacher, std::span<const int64_t> sequence_begins,
                      size_t scratch_bytes, const PairObjective& pair_objective) {
  const int64_t vocabulary = student.head.rows, width = student.head.columns,
                teacher_width = teacher.head.columns;
  const int64_t rows = static_cast<int64_t>(student.hidden.size()) / width;
  assert(teacher.head.rows == vocabulary &&
         static_cast<int64_t>(teacher.hidden.size()) == rows * teacher_width);
  const auto chunks =
      chunks_of(rows, rows_within(scratch_bytes, 2 * vocabulary * 4), student.precision, sequence_begins);
  Buffer scratch(static_cast<size_t>(2 * most_rows(chunks) * vocabulary));
  for (const Chunk& chunk : chunks) {
    const int64_t first = chunk.first, count = chunk.count;
    const size_t logit_count = static_cast<size_t>(count * vocabulary);
    const auto student_logits = scratch.span().first(logit_count);
    const auto teacher_logits = scratch.span().subspan(logit_count, logit_count);
    matmul(student_logits,
           student.hidden.subspan(static_cast<size_t>(first * width), static_cast<size_t>(count * width)),
           student.head, student.precision);
    matmul(teacher_logits,
           teacher.hidden.subspan(static_cast<size_t>(first * teacher_width),
                                  static_cast<size_t>(count * teacher_width)),
           teacher.head, teacher.precision);
    parallel_chunks(count, 1, count * vocabulary, [&](int64_t row, int64_t) {
      const size_t row_at = static_cast<size_t>(row * vocabulary);
      pair_objective(first + row, student_logits.subspan(row_at, static_cast<size_t>(vocabulary)),
                     teacher_logits.subspan(row_at, static_cast<size_t>(vocabulary)));
    });
    add_head_gradients(grad_hidden, grad_weight, student_logits, student.hidden, student.head,
                       student.precision, chunk);
  }
}

}  // namespace ropd::kernels
