#include "rollout/row_stream.h"

#include <gtest/gtest.h>

#include "base/progress.h"
#include "rollout/local_generator.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::rollout {
namespace {

TEST(RowStream, GivesTheRowsOfTheFile) {
  set_progress_mode(ProgressMode::quiet);
  const test::TemporaryDirectory directory;
  const auto parameters = test::random_parameters(test::tiny_config(Architecture::qwen3), 3, 0.5f);
  std::vector<PromptedQuery> queries;
  for (Token q = 1; q <= 6; ++q)
    queries.push_back({"q" + std::to_string(q), std::vector<Token>(static_cast<size_t>(5 * q), q), "7"});
  const auto requests = make_requests(queries, 0, 4, {17, "test"});
  EngineConfig config;
  config.max_response_tokens = 40;
  config.eos_ids = {5};
  config.memory_bytes = 16 << 20;
  LocalGenerator generator(parameters.weights(), model::Precision::f32, config, 0);
  const BankOptions options{.decode = [](std::span<const Token> ids) { return std::to_string(ids.size()); }};
  make_bank(generator, requests, directory / "bank.jsonl", {"tiny", "x"}, options);
  std::string rows;
  const RunSummary run = stream_rows(
      generator, requests, [&](std::string_view row) { rows.append(row) += '\n'; }, options);
  EXPECT_EQ(run.num_done, requests.size());
  EXPECT_EQ(rows, read_file(directory / "bank.jsonl"));
  set_progress_mode(ProgressMode::automatic);
}

}  // namespace
}  // namespace ropd::rollout
