// Subsets of the real line as sorted disjoint intervals, to compare unions, intersections and differences
// written in different ways: (2,3] u [0,1) = [0,1) u (2,3]. Points are intervals of one number.
#pragma once
#include <optional>
#include <vector>

#include "grading/expression.h"

namespace ropd::grading {

struct RealPiece {
  ExpressionRef low, high;
  bool low_open = true, high_open = true;
};
using RealSet = std::vector<RealPiece>;

// The pieces of a set expression; nothing when an end is not a real constant or the set is not of this kind.
[[nodiscard]] std::optional<RealSet> to_real_set(const Expression& node);

// Where a relation (or chain) of one symbol and constants holds: 0 < x < 1 -> (0, 1).
[[nodiscard]] std::optional<RealSet> to_solution_set(const Expression& relation);

[[nodiscard]] bool are_equal_sets(const RealSet& left, const RealSet& right);

}  // namespace ropd::grading
