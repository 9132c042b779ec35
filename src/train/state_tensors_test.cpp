#include "train/state_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::train {
namespace {

const std::vector<optim::TensorRange> kTensors = {{"embed", 0, 3}, {"norm", 3, 1}, {"mlp", 4, 5}};

TEST(StateTensors, ComeBackExactly) {
  test::TemporaryDirectory directory;
  std::vector<float> m = {1, -0.0f, 1e-45f, 3, 4, 5, 6, 7, std::numeric_limits<float>::max()}, v(9, 0.1f);
  save_vectors(directory / "o.safetensors", std::vector<SavedVector>{{"exp_avg", m}, {"exp_avg_sq", v}},
               kTensors);
  std::vector<float> new_m(9), new_v(9);
  load_vectors(directory / "o.safetensors",
               std::vector<RestoredVector>{{"exp_avg", new_m}, {"exp_avg_sq", new_v}}, kTensors);
  EXPECT_EQ(std::memcmp(m.data(), new_m.data(), 36), 0);
  EXPECT_EQ(std::memcmp(v.data(), new_v.data(), 36), 0);
}

TEST(StateTensors, RefuseTheStateOfAnotherModel) {
  test::TemporaryDirectory directory;
  std::vector<float> m(9);
  save_vectors(directory / "o.safetensors", std::vector<SavedVector>{{"exp_avg", m}}, kTensors);
  const std::vector<RestoredVector> wanted = {{"exp_avg", m}};
  EXPECT_THROW(
      load_vectors(directory / "o.safetensors", wanted, std::vector<optim::TensorRange>{{"embed", 0, 9}}),
      Error);
  EXPECT_THROW(load_vectors(directory / "o.safetensors", wanted,
                            std::vector<optim::TensorRange>{{"embed", 0, 3}, {"norm", 3, 2}, {"mlp", 5, 4}}),
               Error);
  EXPECT_THROW(
      load_vectors(directory / "o.safetensors", wanted,
                   std::vector<optim::TensorRange>{{"embed", 0, 3}, {"norm", 3, 1}, {"other", 4, 5}}),
      Error);
}

}  // namespace
}  // namespace ropd::train
