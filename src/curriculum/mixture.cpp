#include "curriculum/mixture.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/error.h"

namespace ropd::curriculum {
namespace {

uint64_t sum_of(const Ratio& ratio) { return std::accumulate(ratio.begin(), ratio.end(), uint64_t{0}); }

}  // namespace

Ratio reduced(Ratio ratio) {
  uint64_t common = 0;
  for (const uint64_t number : ratio) common = std::gcd(common, number);
  if (common > 1)
    for (uint64_t& number : ratio) number /= common;
  const bool are_equal = std::all_of(ratio.begin(), ratio.end(), [](uint64_t number) { return number == 1; });
  return are_equal ? Ratio{} : ratio;
}

std::vector<uint32_t> interleave(const Ratio& ratio, size_t parts, uint64_t count) {
  const Ratio weights = ratio.empty() ? Ratio(parts, 1) : ratio;
  const uint64_t sum = sum_of(weights);
  assert(weights.size() == parts && sum > 0);
  if (count >= static_cast<uint64_t>(INT64_MAX) / sum)
    fail("a mixture of ", count, " responses in shares of ", sum,
         " is too fine; give its ratio in smaller numbers");
  std::vector<uint32_t> places;
  std::vector<int64_t> behind(parts,
                              0);  // of a part: its share of the places so far less those it has, times sum
  for (uint64_t place = 0; place < count; ++place) {
    for (size_t p = 0; p < parts; ++p) behind[p] += static_cast<int64_t>(weights[p]);
    const auto farthest = std::max_element(behind.begin(), behind.end());  // the first of equal ones
    *farthest -= static_cast<int64_t>(sum);
    places.push_back(static_cast<uint32_t>(farthest - behind.begin()));
  }
  return places;
}

std::vector<uint64_t> places_of_parts(const Ratio& ratio, size_t parts, uint64_t count) {
  std::vector<uint64_t> result(parts, 0);
  for (const uint32_t part : interleave(ratio, parts, count)) ++result[part];
  return result;
}

Ratio ratio_between(const Ratio& from, const Ratio& to, uint64_t iteration, uint64_t length) {
  assert(from.size() == to.size() && iteration < length);
  if (length == 1) return reduced(from);
  const uint64_t sum_from = sum_of(from), sum_to = sum_of(to);
  Ratio ratio;
  for (size_t p = 0; p < from.size(); ++p)
    ratio.push_back(from[p] * sum_to * (length - 1 - iteration) + to[p] * sum_from * iteration);
  return reduced(ratio);
}

}  // namespace ropd::curriculum
