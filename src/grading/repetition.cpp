#include "grading/repetition.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

// Suffixes in order, by doubling: after round k they are ordered by their first 2^k characters.
std::vector<int32_t> suffix_order(const std::vector<int32_t>& text) {
  const auto n = static_cast<int32_t>(text.size());
  std::vector<int32_t> suffixes(text.size()), rank = text, next(text.size());
  std::iota(suffixes.begin(), suffixes.end(), 0);
  for (int32_t width = 1;; width *= 2) {
    const auto key = [&](int32_t i) { return i + width < n ? rank[static_cast<size_t>(i + width)] : -1; };
    const auto less = [&](int32_t a, int32_t b) {
      const int32_t x = rank[static_cast<size_t>(a)], y = rank[static_cast<size_t>(b)];
      return x != y ? x < y : key(a) < key(b);
    };
    std::sort(suffixes.begin(), suffixes.end(), less);
    next[static_cast<size_t>(suffixes[0])] = 0;
    for (size_t i = 1; i < suffixes.size(); ++i)
      next[static_cast<size_t>(suffixes[i])] =
          next[static_cast<size_t>(suffixes[i - 1])] + (less(suffixes[i - 1], suffixes[i]) ? 1 : 0);
    rank = next;
    if (rank[static_cast<size_t>(suffixes.back())] == n - 1) return suffixes;
  }
}

}  // namespace

bool is_repetitive(std::string_view text) {
  std::vector<int32_t> characters;
  for (size_t i = 0; i < text.size(); i += character_bytes(text, i))
    characters.push_back(static_cast<int32_t>(code_point(text, i)));
  const size_t n = characters.size();
  if (n <= 1) return false;
  const auto suffixes = suffix_order(characters);
  std::vector<size_t> place(n);
  for (size_t i = 0; i < n; ++i) place[static_cast<size_t>(suffixes[i])] = i;
  uint64_t total = 0;
  size_t common = 0;  // Kasai: it falls by at most one from one suffix to the next
  for (size_t i = 0; i < n; ++i) {
    if (place[i] == n - 1) {
      common = 0;
      continue;
    }
    const auto j = static_cast<size_t>(suffixes[place[i] + 1]);
    while (i + common < n && j + common < n && characters[i + common] == characters[j + common]) ++common;
    total += common;
    if (common > 0) --common;
  }
  return static_cast<double>(total) * 2 / (static_cast<double>(n) * static_cast<double>(n + 1)) > 0.2;
}

}  // namespace ropd::grading
