#include "watch/responses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/sample_file.h"
#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::watch {
namespace {

ResponseSample sample_of(uint64_t iteration, const std::string& query, const std::string& response) {
  ResponseSample sample{.iteration = iteration,
                        .query_id = query,
                        .question = "What is 2 + 2?",
                        .answer = "4",
                        .correct = response == "4",
                        .finish = response == "4" ? Finish::eos : Finish::length,
                        .num_tokens = response.size()};
  for (const char c : response) sample.tokens.push_back({{std::string(1, c), 1, -0.5, -1.0}, {}});
  return sample;
}

TEST(Passes, ChecksEveryWish) {
  const ResponseSample right = sample_of(3, "Query-7", "4"), wrong = sample_of(3, "q8", "Five");
  EXPECT_TRUE(passes(right, {}));
  EXPECT_TRUE(passes(right, {.correct = true}));
  EXPECT_FALSE(passes(wrong, {.correct = true}));
  EXPECT_FALSE(passes(right, {.finish = Finish::length}));
  EXPECT_FALSE(passes(right, {.min_tokens = 2}));
  EXPECT_FALSE(passes(wrong, {.max_tokens = 3}));
  EXPECT_FALSE(passes(right, {.iteration = 4}));
  EXPECT_TRUE(passes(right, {.text = "query-7"}));
  EXPECT_TRUE(passes(wrong, {.text = "five"}));  // across tokens
  EXPECT_TRUE(passes(wrong, {.text = "2 + 2"}));
  EXPECT_FALSE(passes(wrong, {.text = "seven"}));
}

TEST(FindResponses, NewestFirst) {
  const test::TemporaryDirectory run;
  io::write_samples(run / "samples/iter-0001.jsonl", {sample_of(1, "a", "x")});
  io::write_samples(run / "samples/iter-0002.jsonl", {sample_of(2, "b", "4"), sample_of(2, "c", "y")});
  const Json all = find_responses(run.path(), {});
  ASSERT_EQ(all["responses"].size(), 3u);
  EXPECT_EQ(all["responses"][0]["query"], "b");
  EXPECT_EQ(all["responses"][2]["query"], "a");
  EXPECT_EQ(all["responses"][0]["tokens"][0], Json::parse(R"(["4", -0.5, -1.0, [], "less1"])"));
  EXPECT_EQ(find_responses(run.path(), {.correct = true})["responses"].size(), 1u);
  EXPECT_EQ(find_responses(run / "nothing", {})["responses"].size(), 0u);
}

TEST(FindResponses, IsBoundedAndHarmlessWhateverTheFilesHold) {
  const test::TemporaryDirectory run;
  ResponseSample huge = sample_of(1, "a\x1b[2J", "x");
  huge.tokens[0].chosen.text = std::string(10'000'000, 'x');
  huge.question = "\u202E" + std::string(1'000'000, 'q');
  io::write_samples(run / "samples/iter-0001.jsonl", {huge});
  test::write_text(run / "samples/iter-0002.jsonl", "{\"iteration\": \"no\"}\n");
  const Json found = find_responses(run.path(), {});
  EXPECT_LT(found.dump().size(), 10'000u);
  EXPECT_EQ(found["responses"][0]["query"], "a␛[2J");
  EXPECT_THAT(found["responses"][0]["question"].get<std::string>(), testing::StartsWith("⟨U+202E⟩qq"));
  EXPECT_EQ(found["problems"].size(), 1u);
}

}  // namespace
}  // namespace ropd::watch
