#include "grading/matrix_algebra.h"

#include <gtest/gtest.h>

#include "grading/evaluation.h"

namespace ropd::grading {
namespace {

ExpressionRef matrix(std::initializer_list<int> values, size_t columns) {
  std::vector<ExpressionRef> elements;
  for (const int value : values) elements.push_back(make_number(Rational(value)));
  return make_matrix(std::move(elements), columns);
}

std::vector<std::string> values(const Expression& node) {
  std::vector<std::string> result;
  for (const auto& element : node.children) result.push_back(evaluate_exactly(*element)->text());
  return result;
}

TEST(Matrices, AddWhereShapesFit) {
  EXPECT_EQ(values(*add_matrices(matrix({1, 2}, 2), matrix({3, 4}, 2))),
            (std::vector<std::string>{"4", "6"}));
  EXPECT_EQ(add_matrices(matrix({1, 2}, 2), matrix({1, 2}, 1)), nullptr);
  EXPECT_EQ(add_matrices(matrix({1, 2}, 2), make_number(Rational(0))), nullptr);
}

TEST(Matrices, MultiplyByScalarsAndMatrices) {
  EXPECT_EQ(values(*multiply_with_matrix(make_number(Rational(2)), matrix({1, 2}, 2))),
            (std::vector<std::string>{"2", "4"}));
  EXPECT_EQ(values(*multiply_with_matrix(matrix({1, 2, 3, 4}, 2), matrix({5, 6}, 1))),
            (std::vector<std::string>{"17", "39"}));
  EXPECT_EQ(multiply_with_matrix(matrix({1, 2, 3}, 3), matrix({5, 6}, 1)), nullptr);
}

}  // namespace
}  // namespace ropd::grading
