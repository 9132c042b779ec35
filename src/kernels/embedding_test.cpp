#include "kernels/embedding.h"

#include <gtest/gtest.h>

#include "base/threads.h"
#include "support/gradient_check.h"

namespace ropd::kernels {
namespace {

using ropd::test::random_values;

TEST(Embedding, GathersRowsOfEveryElementType) {
  const int64_t vocabulary = 11, width = 7;
  const auto values = random_values(static_cast<size_t>(vocabulary * width), 1);
  std::vector<uint16_t> bf16(values.size()), f16(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    bf16[i] = float_to_bf16(values[i]);
    f16[i] = float_to_f16(values[i]);
  }
  const std::vector<int32_t> ids = {3, 10, 0, 3};
  std::vector<float> out(ids.size() * static_cast<size_t>(width));
  const auto expect = [&](const WeightView& table, auto value) {
    embedding(out, ids, table);
    for (size_t t = 0; t < ids.size(); ++t)
      for (size_t i = 0; i < static_cast<size_t>(width); ++i)
        ASSERT_EQ(out[t * 7 + i], value(static_cast<size_t>(ids[t]) * 7 + i));
  };
  expect({values.data(), DType::f32, vocabulary, width}, [&](size_t i) { return values[i]; });
  expect({bf16.data(), DType::bf16, vocabulary, width}, [&](size_t i) { return bf16_to_float(bf16[i]); });
  expect({f16.data(), DType::f16, vocabulary, width}, [&](size_t i) { return f16_to_float(f16[i]); });
}

TEST(Embedding, GradientAddsTokensInOrderWhateverTheSplitOrThreads) {
  const size_t vocabulary = 37, width = 66, tokens = 900, first = 411;
  const auto grad_out = random_values(tokens * width, 2);
  std::vector<int32_t> ids(tokens);
  for (size_t t = 0; t < tokens; ++t) ids[t] = static_cast<int32_t>(t * t % vocabulary);
  std::vector<float> expected(vocabulary * width, 0.25f);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t i = 0; i < width; ++i)
      expected[static_cast<size_t>(ids[t]) * width + i] += grad_out[t * width + i];
  const size_t before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    std::vector<float> grad_table(vocabulary * width, 0.25f);
    embedding_grad(grad_table, std::span(grad_out).first(first * width), std::span(ids).first(first));
    embedding_grad(grad_table, std::span(grad_out).subspan(first * width), std::span(ids).subspan(first));
    EXPECT_EQ(grad_table, expected);
  }
  set_num_threads(before);
}

TEST(Embedding, NoTokensChangeNothing) {
  std::vector<float> grad_table(4, 1.0f);
  embedding_grad(grad_table, {}, {});
  EXPECT_EQ(grad_table, std::vector<float>(4, 1.0f));
}

}  // namespace
}  // namespace ropd::kernels
