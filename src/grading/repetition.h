// Whether a text mostly repeats itself: the mean length of the longest repeat over all pairs of neighbouring
// suffixes,
//   sum of adjacent LCPs in suffix order * 2 / (n (n + 1)) > 0.2.
// The reference refuses to parse such texts (stage 3, only above 128 characters).
#pragma once
#include <string_view>

namespace ropd::grading {

[[nodiscard]] bool is_repetitive(std::string_view text);

}  // namespace ropd::grading
