#include "train/adapter_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ropd::train {
namespace {

using testing::HasSubstr;

AdapterSection parse(const std::string& yaml) { return parse_config<AdapterSection>(yaml, "run.yaml"); }

std::string error_of(const std::string& yaml) {
  try {
    parse(yaml);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AdapterSection, MeansPeftsAllLinearUnlessTargetsAreNamed) {
  EXPECT_EQ(adapter_config({}), AdapterConfig{});
  EXPECT_EQ(adapter_config(parse("targets: all-linear")), AdapterConfig{});
  const AdapterConfig some = adapter_config(
      parse("{rank: 4, alpha: 6, rslora: true, targets: [q_proj, v_proj], ranks: {v_proj: 2}}"));
  EXPECT_EQ(some, (AdapterConfig{.rank = 4,
                                 .alpha = 6,
                                 .rslora = true,
                                 .targets = {"q_proj", "v_proj"},
                                 .ranks = {{"v_proj", 2}},
                                 .alphas = {}}));
}

TEST(AdapterSection, RefusesWhatCannotBe) {
  EXPECT_THAT(error_of("rank: 0"), HasSubstr("rank"));
  EXPECT_THAT(error_of("alpha: 0"), HasSubstr("alpha"));
  EXPECT_THAT(error_of("targets: [lm_head]"), HasSubstr("targets[0]"));
  EXPECT_THAT(error_of("targets: []"), HasSubstr("is empty"));
  EXPECT_THAT(error_of("targets: [all-linear, q_proj]"), HasSubstr("all-linear beside others"));
  EXPECT_THAT(error_of("ranks: {c_attn: 2}"), HasSubstr("c_attn"));
  EXPECT_THAT(error_of("{targets: [q_proj], ranks: {v_proj: 2}}"), HasSubstr("does not name v_proj"));
  EXPECT_THAT(error_of("{path: some/where, rank: 8}"), HasSubstr("are its own"));
  EXPECT_EQ(error_of("path: some/where"), "accepted");
}

TEST(AdapterSection, HintsAtALearningRateOfFullTraining) {
  EXPECT_THAT(*adapter_rate_hint(1e-6, 1e-6), HasSubstr("1e-06"));
  EXPECT_FALSE(adapter_rate_hint(2e-5, 1e-6));
}

}  // namespace
}  // namespace ropd::train
