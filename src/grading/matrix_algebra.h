// Sums, multiples and products of matrices while they are parsed, so that a matrix expression is always one
// matrix.
#pragma once
#include "grading/expression.h"

namespace ropd::grading {

[[nodiscard]] inline bool is_matrix(const Expression& node) { return node.kind == Kind::matrix; }
[[nodiscard]] ExpressionRef make_matrix(std::vector<ExpressionRef> elements, size_t num_columns);
// Null when shapes do not fit or one side is no matrix.
[[nodiscard]] ExpressionRef add_matrices(const ExpressionRef& left, const ExpressionRef& right);
// Scalar times matrix or matrix times matrix; null when shapes do not fit.
[[nodiscard]] ExpressionRef multiply_with_matrix(const ExpressionRef& left, const ExpressionRef& right);

}  // namespace ropd::grading
