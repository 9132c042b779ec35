// load_sft_data of sft.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/log.h"
#include "support/tiny_world.h"
#include "train/sft.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

class SftFiles : public testing::Test {
 protected:
  SftFiles() { set_log_level(LogLevel::quiet); }
  ~SftFiles() override { set_log_level(LogLevel::info); }
  const test::TinyWorld world;
  SftData load(const std::string& lines, uint64_t max_tokens = 100, uint64_t seed = 1) const {
    write_file_atomically(world.path("data.jsonl"), lines);
    SftConfig config;
    config.model = world.path("student").string();
    config.data = world.path("data.jsonl").string();
    config.max_tokens = max_tokens;
    config.batch_tokens = 10;
    config.epochs = 3;
    config.seed = seed;
    return load_sft_data(config);
  }
};

TEST_F(SftFiles, ReadsTextMessagesAndIds) {
  const auto one = [&](const std::string& line) { return load(line + "\n").examples(0, 0); };
  const SftExample text = one(R"({"prompt": "ab", "response": "cd"})");
  EXPECT_THAT(text.prompt_ids, ElementsAre(0, 1));
  EXPECT_THAT(text.response_ids, ElementsAre(2, 3, test::kTinyEnd));  // the end is part of a response
  EXPECT_THAT(text.loss_weights, ElementsAre(1, 1, 1));
  EXPECT_THAT(one(R"({"messages": [{"role": "user", "content": "ab"}], "solution": "c"})").response_ids,
              ElementsAre(2, test::kTinyEnd));
  const SftExample ids = one(R"({"prompt_ids": [5], "response_ids": [6, 7], "loss_weights": [0, 0.5]})");
  EXPECT_THAT(ids.response_ids, ElementsAre(6, 7));
  EXPECT_THAT(ids.loss_weights, ElementsAre(0, 0.5f));
}

TEST_F(SftFiles, EveryEpochIsANewPermutationAndAnyIndexCanBeAskedAgain) {
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += "{\"prompt_ids\": [1], \"response_ids\": [" + std::to_string(i) + "]}\n";
  const SftData data = load(lines);
  EXPECT_EQ(data.num_examples, 20u);
  EXPECT_EQ(data.steps, 12u);  // three epochs of 40 tokens, 10 a step
  std::vector<Token> first, second;
  for (uint64_t i = 0; i < 20; ++i) first.push_back(data.examples(i, 0).response_ids[0]);
  for (uint64_t i = 20; i < 40; ++i) second.push_back(data.examples(i, 0).response_ids[0]);
  EXPECT_EQ(std::set<Token>(first.begin(), first.end()).size(), 20u);
  EXPECT_EQ(std::set<Token>(second.begin(), second.end()).size(), 20u);
  EXPECT_NE(first, second);
  EXPECT_EQ(data.examples(3, 0).response_ids[0], first[3]);
  EXPECT_EQ(load(lines).examples(25, 0).response_ids[0], second[5]);
  std::vector<Token> other;
  const SftData reseeded = load(lines, 100, 2);
  for (uint64_t i = 0; i < 20; ++i) other.push_back(reseeded.examples(i, 0).response_ids[0]);
  EXPECT_NE(other, first);
}

TEST_F(SftFiles, LongExamplesAreDroppedAndCounted) {
  const std::string lines =
      "{\"prompt_ids\": [1], \"response_ids\": [2]}\n{\"prompt_ids\": [1], \"response_ids\": [2, 3, 4, 5]}\n";
  EXPECT_EQ(load(lines, 4).num_too_long, 1u);
  EXPECT_EQ(load(lines, 4).num_examples, 1u);
  EXPECT_THAT(error_of([&] { load("{\"prompt_ids\": [1], \"response_ids\": [2, 3, 4, 5]}\n", 4); }),
              HasSubstr("no example is left"));
}

TEST_F(SftFiles, BadRowsAreNamed) {
  const auto error = [&](const std::string& line) { return error_of([&] { load(line + "\n"); }); };
  EXPECT_THAT(error(R"({"prompt_ids": [37], "response_ids": [1]})"),
              testing::AllOf(HasSubstr("data.jsonl:1"), HasSubstr("37"), HasSubstr("vocabulary of 37")));
  EXPECT_THAT(error(R"({"prompt_ids": [-1], "response_ids": [1]})"), HasSubstr("-1"));
  EXPECT_THAT(error(R"({"prompt_ids": ["a"], "response_ids": [1]})"), HasSubstr("vocabulary"));
  EXPECT_THAT(error(R"({"response": "a"})"), HasSubstr("no prompt"));
  EXPECT_THAT(error(R"({"prompt": "a"})"), HasSubstr("no response"));
  EXPECT_THAT(error(R"({"prompt_ids": [1], "response_ids": []})"), HasSubstr("empty"));
  EXPECT_THAT(error(R"({"prompt_ids": [1], "response_ids": [1], "loss_weights": [1, 2]})"),
              HasSubstr("2 loss_weights for 1"));
  EXPECT_THAT(error(R"({"prompt_ids": [1], "response_ids": [1], "loss_weights": ["x"]})"),
              HasSubstr("data.jsonl:1"));
  EXPECT_THAT(error(R"({"prompt_ids": [1], "response_ids": [1], "loss_weights": [-1]})"),
              HasSubstr("data.jsonl:1"));
  EXPECT_THAT(error(R"({"messages": [{"role": "user"}], "response": "a"})"), HasSubstr("data.jsonl:1"));
  EXPECT_THAT(error(R"({"prompt_ids": 3, "response_ids": [1]})"), HasSubstr("data.jsonl:1"));
  EXPECT_THAT(error(R"([1])"), HasSubstr("data.jsonl:1"));
}

TEST_F(SftFiles, TextNeedsATokenizer) {
  std::filesystem::remove(world.path("student") / "tokenizer.json");
  EXPECT_THAT(error_of([&] { load("{\"prompt\": \"ab\", \"response\": \"c\"}\n"); }),
              HasSubstr("no tokenizer"));
  EXPECT_EQ(load("{\"prompt_ids\": [1], \"response_ids\": [2]}\n").num_examples, 1u);
}

}  // namespace
}  // namespace ropd::train
