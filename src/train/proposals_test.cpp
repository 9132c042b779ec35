#include "train/proposals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paper_models.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> settings_of(const Proposal& proposal) {
  std::vector<std::string> settings;
  for (const ProposedSetting& setting : proposal.settings) settings.push_back(setting.setting);
  return settings;
}

class PaperPair : public testing::Test {
 protected:
  PaperPair() { test::write_paper_models(folder_.path()); }
  const test::TemporaryDirectory folder_;

  TrainConfig recipe(const std::string& name, std::vector<std::string> changes = {}) const {
    for (const char* role : {"student", "teacher"}) {
      const TrainConfig as_written = load_train_config("recipes/" + name + ".yaml");
      const std::string model = role == std::string("student") ? as_written.student : as_written.teacher;
      changes.push_back(std::string(role) + "=" + (folder_.path() / Path(model).filename()).string());
    }
    return load_train_config("recipes/" + name + ".yaml", changes);
  }
  static Machine with_memory(double gigabytes) {
    return {
        .flops = 1e12, .read_bytes_per_second = 1e9, .memory_bytes = static_cast<uint64_t>(gigabytes * 1e9)};
  }
};

TEST_F(PaperPair, ARunThatFitsGetsNoProposal) {
  EXPECT_FALSE(propose(recipe("qwen3-1.7b-ropd"), with_memory(128)).has_value());
}

TEST_F(PaperPair, SameBitsComeFirstAndTheCheapestOfThem) {
  const TrainConfig config = recipe("qwen3-1.7b-ropd");
  const uint64_t needed = make_plan(config, with_memory(128)).memory_bytes;
  const auto little = propose(config, with_memory(static_cast<double>(needed) / 1e9 - 1));
  ASSERT_TRUE(little && little->fits());
  EXPECT_THAT(settings_of(*little), ElementsAre("trigger.storage=file"));
}

TEST_F(PaperPair, The17BPairFits24GB) {
  const auto proposal = propose(recipe("qwen3-1.7b-ropd"), with_memory(24));
  ASSERT_TRUE(proposal.has_value());
  EXPECT_TRUE(proposal->fits()) << proposal_text(*proposal);
  EXPECT_LE(proposal->plan.memory_bytes, 24'000'000'000u);
  EXPECT_THAT(settings_of(*proposal), testing::Contains("train.optimizer_storage=file"));
}

TEST_F(PaperPair, The8BPairFits64GBByAdaptersAndAStreamedTeacher) {
  const auto proposal = propose(recipe("qwen3-8b-ropd"), with_memory(64));
  ASSERT_TRUE(proposal.has_value());
  EXPECT_TRUE(proposal->fits()) << proposal_text(*proposal);
  EXPECT_THAT(settings_of(*proposal), testing::Contains("adapter={rank: 16}"));
  EXPECT_TRUE(proposal->plan.teacher.is_streamed);
  EXPECT_GE(proposal->plan.teacher.read_bytes, 60'000'000'000u);
}

TEST_F(PaperPair, WhatIsProposedIsWhatTheSettingsNeed) {
  TrainConfig config = recipe("qwen3-1.7b-ropd");
  const auto proposal = propose(config, with_memory(30));
  ASSERT_TRUE(proposal && proposal->fits());
  auto settings = settings_of(*proposal);
  ASSERT_THAT(settings, Not(testing::Contains(HasSubstr("adapter"))));
  const Plan plan = make_plan(recipe("qwen3-1.7b-ropd", settings), with_memory(30));
  EXPECT_EQ(plan.memory_bytes, proposal->plan.memory_bytes);
}

TEST_F(PaperPair, WhereNothingFitsTheLeastIsTold) {
  const auto proposal = propose(recipe("qwen3-8b-ropd"), with_memory(8));
  ASSERT_TRUE(proposal.has_value());
  EXPECT_FALSE(proposal->fits());
  EXPECT_THAT(proposal_text(*proposal), AllOf(HasSubstr("fits not"), HasSubstr("max_response_tokens")));
  EXPECT_THAT(proposal_sentence(*proposal), HasSubstr("not even with"));
}

TEST_F(PaperPair, ARefusalSaysWithWhatItFits) {
  EXPECT_THAT(error_of([&] { check_fits(recipe("qwen3-1.7b-ropd"), with_memory(60)); }),
              AllOf(HasSubstr("of memory"), HasSubstr("it fits with"), HasSubstr("=file")));
}

TEST(AdapterOfRank, HasBothSidesOfEveryProjection) {
  ModelConfig c = test::tiny_config(Architecture::qwen3);  // D 20, H*E 24, K*E 12, F 28, two layers
  EXPECT_EQ(adapter_of_rank(c, 3).parameters, 3u * 2 * (44 + 32 + 32 + 44 + 48 + 48 + 48));
  EXPECT_EQ(adapter_of_rank(c, 3).merged_layer_bytes, 4u * (2 * 20 * 24 + 2 * 20 * 12 + 3 * 20 * 28));
}

}  // namespace
}  // namespace ropd::train
