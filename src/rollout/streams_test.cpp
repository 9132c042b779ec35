#include "rollout/streams.h"

#include <gmock/gmock.h>

#include <set>

#include "rollout/engine.h"
#include "support/naive_model.h"

namespace ropd::rollout {
namespace {

std::vector<RandomStream> one_of_each_purpose() {
  const RandomStream evaluation = evaluation_stream(1, "three", 16384);
  return {training_stream(1, 0),
          training_stream(1, 4),
          training_stream(2, 0),
          bank_stream(1, "initial bank", 2400),
          bank_stream(1, "initial bank", 4800),
          bank_stream(1, "recent bank 40", 2400),
          benchmark_stream(evaluation, "AIME24"),
          benchmark_stream(evaluation, "AIME25"),
          benchmark_stream(evaluation_stream(1, "eight", 16384), "AIME24"),
          benchmark_stream(evaluation_stream(1, "three", 32768), "AIME24"),
          diagnostics_stream(1, "initial"),
          diagnostics_stream(1, "R20"),
          RandomStream(1, "generate")};
}

// A stored response can only be made again while these stay as they are.
TEST(Streams, NamesAreThoseOfTheFormat) {
  EXPECT_EQ(training_stream(1, 4).name, "training round at step 4");
  EXPECT_EQ(bank_stream(1, "initial bank", 2400).name, "initial bank of 2400");
  EXPECT_EQ(benchmark_stream(evaluation_stream(1, "three", 16384), "AIME24").name,
            "evaluation of three at 16384 tokens, AIME24");
  EXPECT_EQ(diagnostics_stream(1, "R20").name, "diagnostic prefixes of R20");
  EXPECT_EQ(training_stream(1, 4).derived_seed(), derive_seed(1, "training round at step 4"));
}

// The same weights, prompt, query and sample; only the purpose differs.
TEST(Streams, NoTwoPurposesShareTheirResponses) {
  const model::Parameters parameters = test::random_parameters(test::tiny_config(Architecture::qwen3), 3);
  Engine engine(parameters.weights(), model::Precision::f32,
                {.max_response_tokens = 20, .memory_bytes = 16 << 20});
  const auto prompt = std::make_shared<const std::vector<Token>>(std::vector<Token>{1, 2, 3});
  std::vector<Request> requests;
  for (const RandomStream& stream : one_of_each_purpose()) requests.push_back({"q", 0, prompt, stream, ""});
  std::set<std::vector<Token>> beginnings;
  engine.run(requests, {.on_done = [&](size_t, Rollout&& rollout) {
               rollout.response_ids.resize(6);
               beginnings.insert(rollout.response_ids);
             }});
  EXPECT_EQ(beginnings.size(), requests.size());
}

}  // namespace
}  // namespace ropd::rollout
