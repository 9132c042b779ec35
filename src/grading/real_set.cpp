#include "grading/real_set.h"

#include <algorithm>

#include "grading/evaluation.h"

namespace ropd::grading {
namespace {

constexpr size_t kMaxPieces = 100;

ExpressionRef infinity(bool negative) {
  auto node = make_node(Kind::infinity, {});
  return negative ? make_negative(node) : node;
}

RealSet all_reals() { return {{infinity(true), infinity(false), true, true}}; }

// compare_reals of ends that are known to be comparable (checked by is_valid).
int order(const ExpressionRef& left, const ExpressionRef& right) {
  return compare_reals(left, right).value_or(0);
}

bool is_valid(const RealSet& set) {
  if (set.size() > kMaxPieces) return false;
  for (const auto& piece : set)
    for (const auto& end : {piece.low, piece.high})
      if (!compare_reals(end, set[0].low)) return false;
  return true;
}

bool begins_before(const RealPiece& left, const RealPiece& right) {
  const int by_low = order(left.low, right.low);
  return by_low != 0 ? by_low < 0 : !left.low_open && right.low_open;
}

bool is_empty(const RealPiece& piece) {
  const int by_ends = order(piece.low, piece.high);
  return by_ends > 0 || (by_ends == 0 && (piece.low_open || piece.high_open));
}

// Sorted, overlapping and touching pieces joined.
RealSet joined(RealSet set) {
  std::erase_if(set, is_empty);
  std::stable_sort(set.begin(), set.end(), begins_before);
  RealSet result;
  for (auto& piece : set) {
    if (!result.empty()) {
      RealPiece& last = result.back();
      const int gap = order(piece.low, last.high);
      if (gap < 0 || (gap == 0 && !(piece.low_open && last.high_open))) {
        const int by_high = order(piece.high, last.high);
        if (by_high > 0) {
          last.high = piece.high;
          last.high_open = piece.high_open;
        } else if (by_high == 0) {
          last.high_open = last.high_open && piece.high_open;
        }
        continue;
      }
    }
    result.push_back(std::move(piece));
  }
  return result;
}

RealSet intersection(const RealSet& left, const RealSet& right) {
  RealSet result;
  for (const auto& a : left)
    for (const auto& b : right) {
      RealPiece piece = a;
      const int by_low = order(a.low, b.low), by_high = order(a.high, b.high);
      if (by_low < 0) piece.low = b.low, piece.low_open = b.low_open;
      if (by_low == 0) piece.low_open = a.low_open || b.low_open;
      if (by_high > 0) piece.high = b.high, piece.high_open = b.high_open;
      if (by_high == 0) piece.high_open = a.high_open || b.high_open;
      if (!is_empty(piece)) result.push_back(std::move(piece));
    }
  return joined(std::move(result));
}

RealSet complement(const RealSet& set) {
  RealSet result;
  ExpressionRef low = infinity(true);
  bool low_open = true;
  for (const auto& piece : set) {
    result.push_back({low, piece.low, low_open, !piece.low_open});
    low = piece.high;
    low_open = !piece.high_open;
  }
  result.push_back({low, infinity(false), low_open, true});
  return joined(std::move(result));
}

bool is_negative_infinity(const Expression& node) {
  return node.kind == Kind::multiply && node.children.back()->kind == Kind::infinity;
}

// Relations with the symbol on the left.
std::optional<RealSet> half_line(const std::string& sign, const ExpressionRef& bound) {
  const RealSet point = {{bound, bound, false, false}};
  if (!is_valid(point)) return std::nullopt;
  if (sign == "=") return point;
  if (sign == "!=") return complement(point);
  if (sign[0] == '<') return RealSet{{infinity(true), bound, true, sign.size() == 1}};
  return RealSet{{bound, infinity(false), sign.size() == 1, true}};
}

}  // namespace

std::optional<RealSet> to_real_set(const Expression& node) {
  RealSet result;
  switch (node.kind) {
    case Kind::interval:
      result = {{node.children[0], node.children[1],
                 node.left_open || is_negative_infinity(*node.children[0]),
                 node.right_open || node.children[1]->kind == Kind::infinity}};
      break;
    case Kind::finite_set:
      for (const auto& child : node.children) result.push_back({child, child, false, false});
      break;
    case Kind::named_set:
      if (node.name == "R") return all_reals();
      if (node.name == "empty") return RealSet{};
      return std::nullopt;
    case Kind::set_union:
    case Kind::set_intersection:
    case Kind::set_difference: {
      const auto left = to_real_set(*node.children[0]), right = to_real_set(*node.children[1]);
      if (!left || !right || left->size() + right->size() > kMaxPieces) return std::nullopt;
      if (node.kind == Kind::set_intersection) return intersection(*left, *right);
      if (node.kind == Kind::set_difference) return intersection(*left, complement(*right));
      result = *left;
      result.insert(result.end(), right->begin(), right->end());
      break;
    }
    default:
      return std::nullopt;
  }
  if (!is_valid(result)) return std::nullopt;
  return joined(std::move(result));
}

std::optional<RealSet> to_solution_set(const Expression& relation) {
  if (relation.kind == Kind::chain) {
    RealSet result = all_reals();
    if (free_symbols(relation).size() != 1) return std::nullopt;
    for (const auto& part : relation.children) {
      const auto set = to_solution_set(*part);
      if (!set) return std::nullopt;
      result = intersection(result, *set);
    }
    return result;
  }
  if (relation.kind != Kind::relation) return std::nullopt;
  const auto& left = relation.children[0];
  const auto& right = relation.children[1];
  if (left->kind == Kind::symbol) return half_line(relation.name, right);
  if (right->kind != Kind::symbol) return std::nullopt;
  std::string mirrored = relation.name;
  if (mirrored[0] == '<') {
    mirrored[0] = '>';
  } else if (mirrored[0] == '>') {
    mirrored[0] = '<';
  }
  return half_line(mirrored, left);
}

bool are_equal_sets(const RealSet& left, const RealSet& right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    const auto low = compare_reals(left[i].low, right[i].low),
               high = compare_reals(left[i].high, right[i].high);
    if (!low || !high || *low != 0 || *high != 0) return false;
    if (left[i].low_open != right[i].low_open || left[i].high_open != right[i].high_open) return false;
  }
  return true;
}

}  // namespace ropd::grading
