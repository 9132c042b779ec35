#include "model/init.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/naive_model.h"

namespace ropd::model {
namespace {

TEST(Initialize, GivesEveryTensorItsScale) {
  auto config = test::tiny_config(Architecture::qwen3);
  config.hidden_size = 64;
  Parameters parameters(config);
  initialize(parameters, {.seed = 3, .qk_norm_gain = 1.7f});
  for (const auto& slot : parameters.slots()) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < slot.size; ++i) {
      sum += parameters.values()[slot.offset + i];
      squares += std::pow(parameters.values()[slot.offset + i], 2);
    }
    const double n = static_cast<double>(slot.size), deviation = std::sqrt(squares / n);
    const auto is = [&](const char* part) { return slot.name.find(part) != std::string::npos; };
    if (is("q_norm")) {
      EXPECT_NEAR(sum / n, 1.7, 1e-6);
    } else if (slot.shape.size() == 1 && !is("k_norm")) {
      EXPECT_EQ(sum / n, 1.0);
    } else if (is("embed")) {
      EXPECT_NEAR(deviation, 0.08, 0.005);
    } else if (is("q_proj")) {
      EXPECT_NEAR(deviation, 1 / 8.0, 0.008);
    } else if (is("o_proj")) {
      EXPECT_NEAR(deviation, 1 / std::sqrt(24.0) / 2, 0.008);
    }
  }
}

TEST(Initialize, DependsOnTheSeedAlone) {
  Parameters a(test::tiny_config(Architecture::qwen3)), b(test::tiny_config(Architecture::qwen3)),
      c(test::tiny_config(Architecture::qwen3));
  initialize(a, {.seed = 1});
  initialize(b, {.seed = 1});
  initialize(c, {.seed = 2});
  EXPECT_TRUE(std::equal(a.values().begin(), a.values().end(), b.values().begin()));
  EXPECT_FALSE(std::equal(a.values().begin(), a.values().end(), c.values().begin()));
}

}  // namespace
}  // namespace ropd::model
