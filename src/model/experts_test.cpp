#include "model/experts.h"

#include <gtest/gtest.h>

#include "support/naive_model.h"

namespace ropd::model {
namespace {

TEST(MixtureOfExperts, RowsDoNotDependOnWhoSharesTheirExperts) {
  const auto parameters = test::random_parameters(test::tiny_config(Architecture::qwen3_moe), 5);
  const Weights weights = parameters.weights();
  std::vector<float> normed(9 * 20);
  for (size_t i = 0; i < normed.size(); ++i) normed[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    std::vector<float> together(normed.size(), 0.25f), apart(normed.size(), 0.25f);
    mixture_of_experts(together, normed, weights.layers[0], weights.config, precision);
    for (size_t t = 0; t < 9; ++t)
      mixture_of_experts(std::span(apart).subspan(t * 20, 20), std::span(normed).subspan(t * 20, 20),
                         weights.layers[0], weights.config, precision);
    EXPECT_EQ(together, apart);
  }
}

TEST(MixtureOfExperts, EqualRouterLogitsGoToTheLowerExperts) {
  auto parameters = test::random_parameters(test::tiny_config(Architecture::qwen3_moe), 6);
  for (const auto& slot : parameters.slots()) {
    const bool is_router = slot.name == "model.layers.0.mlp.gate.weight";
    const bool is_unused = slot.name.find("experts.2.") != std::string::npos ||
                           slot.name.find("experts.3.") != std::string::npos ||
                           slot.name.find("experts.4.") != std::string::npos;
    if (is_router) std::fill_n(parameters.values().begin() + slot.offset, slot.size, 0.0f);
    if (is_unused) std::fill_n(parameters.values().begin() + slot.offset, slot.size, 1e30f);
  }
  const Weights weights = parameters.weights();
  std::vector<float> x(20, 0.0f);
  mixture_of_experts(x, std::vector<float>(20, 0.5f), weights.layers[0], weights.config, Precision::f32);
  for (const float value : x) EXPECT_LT(std::abs(value), 1e3f);
}

}  // namespace
}  // namespace ropd::model
