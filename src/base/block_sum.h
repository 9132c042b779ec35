// Sums over long vectors whose bits do not depend on threads or instruction set.
//   sum = ((block 0) + block 1) + ...   blocks of 64K elements,
//                                       each summed in 8 interleaved lanes, all in double
// Blocks are shared among the threads; their results are added in order afterwards. A vector that is divided
// over ranks in whole blocks has the same blocks.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.h"

namespace ropd {

inline constexpr size_t kSumBlock = 65536;
inline constexpr size_t kSumLanes = 8;

// The sum of term(i) for i in [begin, end), element i in lane (i - begin) mod 8. term may also write to
// element i.
template <class Term>
double sum_lanes(size_t begin, size_t end, const Term& term) {
  double lanes[kSumLanes] = {};
  size_t index = begin;
  for (; index + kSumLanes <= end; index += kSumLanes) {
#pragma omp simd
    for (size_t lane = 0; lane < kSumLanes; ++lane) lanes[lane] += term(index + lane);
  }
  for (size_t lane = 0; index < end; ++index, ++lane) lanes[lane] += term(index);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// The sums of term(i), a double, over the blocks of [0, size). term is called once per element, from several
// threads.
template <class Term>
std::vector<double> block_sums(size_t size, const Term& term) {
  const int64_t num_blocks = static_cast<int64_t>((size + kSumBlock - 1) / kSumBlock);
  std::vector<double> sums(static_cast<size_t>(num_blocks));
  parallel_chunks(num_blocks, 1, 4 * static_cast<int64_t>(size), [&](int64_t block, int64_t) {
    const size_t begin = static_cast<size_t>(block) * kSumBlock;
    sums[static_cast<size_t>(block)] = sum_lanes(begin, std::min(begin + kSumBlock, size), term);
  });
  return sums;
}

inline double sum_in_order(const std::vector<double>& sums) {
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// The sum over all of them.
template <class Term>
double block_sum(size_t size, const Term& term) {
  return sum_in_order(block_sums(size, term));
}

}  // namespace ropd
