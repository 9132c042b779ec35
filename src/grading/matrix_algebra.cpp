#include "grading/matrix_algebra.h"

namespace ropd::grading {

ExpressionRef make_matrix(std::vector<ExpressionRef> elements, size_t num_columns) {
  Expression node{.kind = Kind::matrix};
  node.children = std::move(elements);
  node.num_columns = num_columns;
  return std::make_shared<Expression>(std::move(node));
}

ExpressionRef add_matrices(const ExpressionRef& left, const ExpressionRef& right) {
  if (!is_matrix(*left) || !is_matrix(*right) || left->num_columns != right->num_columns ||
      left->children.size() != right->children.size())
    return nullptr;
  std::vector<ExpressionRef> elements;
  for (size_t i = 0; i < left->children.size(); ++i)
    elements.push_back(make_sum(left->children[i], right->children[i]));
  return make_matrix(std::move(elements), left->num_columns);
}

ExpressionRef multiply_with_matrix(const ExpressionRef& left, const ExpressionRef& right) {
  std::vector<ExpressionRef> elements;
  if (!is_matrix(*left) || !is_matrix(*right)) {
    const auto& matrix = is_matrix(*left) ? left : right;
    const auto& scalar = is_matrix(*left) ? right : left;
    for (const auto& element : matrix->children) elements.push_back(make_product(scalar, element));
    return make_matrix(std::move(elements), matrix->num_columns);
  }
  const size_t inner = left->num_columns, columns = right->num_columns;
  const size_t rows = left->children.size() / inner;
  if (right->children.size() / columns != inner || rows * columns * inner > 1000) return nullptr;
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) {
      ExpressionRef total;
      for (size_t k = 0; k < inner; ++k) {
        auto product = make_product(left->children[row * inner + k], right->children[k * columns + column]);
        total = total ? make_sum(total, product) : product;
      }
      elements.push_back(total);
    }
  return make_matrix(std::move(elements), columns);
}

}  // namespace ropd::grading
