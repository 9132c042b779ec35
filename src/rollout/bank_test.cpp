#include "rollout/bank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/threads.h"
#include "rollout/fingerprint.h"
#include "rollout/local_generator.h"
#include "support/error_of.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::rollout {
namespace {

using test::error_of;

class BankTest : public testing::Test {
 protected:
  BankTest() {
    set_log_level(LogLevel::quiet);
    set_progress_mode(ProgressMode::quiet);
    for (int q = 0; q < 6; ++q)
      queries_.push_back(
          {"q" + std::to_string(q), std::vector<Token>(static_cast<size_t>(3 + 9 * q), q + 1), "7"});
    requests_ = make_requests(queries_, 0, 4, {17, "test"});
  }
  ~BankTest() override {
    set_log_level(LogLevel::info);
    set_progress_mode(ProgressMode::automatic);
  }
  LocalGenerator make_engine(bool with_logprobs = true) const {
    EngineConfig config;
    config.max_response_tokens = 40;
    config.eos_ids = {5};
    config.memory_bytes = 16 << 20;
    config.with_logprobs = with_logprobs;
    return LocalGenerator(parameters_.weights(), model::Precision::f32, config, 0);
  }
  BankOrigin origin() const { return {"tiny", weights_fingerprint(parameters_.weights())}; }
  BankResult make(const Path& path, const BankOptions& options = {}) const {
    LocalGenerator engine = make_engine();
    return make_bank(engine, requests_, path, origin(), options);
  }
  const test::TemporaryDirectory directory_;
  const model::Parameters parameters_ =
      test::random_parameters(test::tiny_config(Architecture::qwen3), 3, 0.5f);
  std::vector<PromptedQuery> queries_;
  std::vector<Request> requests_;
};

TEST_F(BankTest, HoldsEveryResponseInOrderOfTheRequests) {
  const Path path = directory_ / "bank.jsonl";
  const BankResult result = make(
      path, {.decode = [](std::span<const Token> ids) { return std::to_string(ids.size()) + " tokens"; }});
  EXPECT_TRUE(result.is_finished);
  EXPECT_EQ(result.run.num_done, requests_.size());
  const auto rollouts = read_bank(path, {.vocab_size = 37}, origin().fingerprint);
  ASSERT_EQ(rollouts.size(), requests_.size());
  for (size_t i = 0; i < rollouts.size(); ++i) {
    EXPECT_EQ(rollouts[i].query_id, requests_[i].query_id);
    EXPECT_EQ(rollouts[i].sample, requests_[i].sample);
    EXPECT_EQ(rollouts[i].prompt_ids, *requests_[i].prompt);
    EXPECT_EQ(rollouts[i].text, std::to_string(rollouts[i].response_ids.size()) + " tokens");
    EXPECT_EQ(rollouts[i].answer, "7");
    EXPECT_EQ(rollouts[i].seed, 17u);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "bank.partial.jsonl"));
}

TEST_F(BankTest, AFinishedBankIsNotSampledAgain) {
  const Path path = directory_ / "bank.jsonl";
  make(path);
  const std::string before = read_file(path);
  const BankResult again = make(path);
  EXPECT_TRUE(again.is_finished);
  EXPECT_EQ(again.num_kept, requests_.size());
  EXPECT_EQ(again.run.num_steps, 0u);
  EXPECT_EQ(read_file(path), before);
}

TEST_F(BankTest, AStoppedBankGoesOn) {
  const Path path = directory_ / "bank.jsonl";
  make(directory_ / "whole.jsonl");
  uint64_t num_tokens = 0;
  const BankResult stopped = make(path, {.on_token = [&](size_t, Token) {
                                    if (++num_tokens == 150) request_stop();
                                  }});
  clear_stop_request();
  EXPECT_FALSE(stopped.is_finished);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_GT(stopped.run.num_done, 0u);
  const BankResult rest = make(path);
  EXPECT_TRUE(rest.is_finished);
  EXPECT_EQ(rest.num_kept, stopped.run.num_done);
  EXPECT_EQ(rest.run.num_done, requests_.size() - stopped.run.num_done);
  EXPECT_EQ(read_file(path), read_file(directory_ / "whole.jsonl"));
}

// The child dies by SIGKILL at its n-th token; the parent goes on from whatever is on disk.
TEST_F(BankTest, AKilledBankEndsWithTheSameBytes) {
  make(directory_ / "whole.jsonl");
  const std::string expected = read_file(directory_ / "whole.jsonl");
  uint64_t num_resumed = 0;
  for (const uint64_t fatal_token : {1, 60, 120, 180, 250, 330}) {
    const Path path = directory_ / ("killed-" + std::to_string(fatal_token) + ".jsonl");
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      set_num_threads(1);  // the threads of the parent do not exist here
      uint64_t num_tokens = 0;
      make(path, {.on_token = [&](size_t, Token) {
             if (++num_tokens == fatal_token) raise(SIGKILL);
           }});
      _exit(0);  // finished before that
    }
    int status = 0;
    waitpid(child, &status, 0);
    const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(was_killed || fatal_token == 330);
    const BankResult rest = make(path);
    num_resumed += rest.num_kept;
    EXPECT_EQ(read_file(path), expected) << "killed at token " << fatal_token;
  }
  EXPECT_GT(num_resumed, 0u) << "or this test shows nothing";
}

TEST_F(BankTest, GoesOnFromATornFile) {
  make(directory_ / "whole.jsonl");
  const std::string expected = read_file(directory_ / "whole.jsonl");
  const Path path = directory_ / "bank.jsonl";
  LocalGenerator engine = make_engine();
  { io::BankStream stream(path, {}, bank_meta(engine, requests_, origin())); }
  std::string partial;
  for (size_t begin = 0, end; (end = expected.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string row = expected.substr(begin, end - begin);
    partial += row + "\t" + sha256(row).substr(0, 16) + "\n";
  }
  write_file_atomically(directory_ / "bank.partial.jsonl", partial.substr(0, partial.size() / 3));
  const BankResult rest = make(path);
  EXPECT_GT(rest.num_kept, 0u);
  EXPECT_LT(rest.num_kept, requests_.size() / 2);
  EXPECT_EQ(read_file(path), expected);
}

TEST_F(BankTest, RefusesAFileThatWasMadeInAnotherWay) {
  const Path path = directory_ / "bank.jsonl";
  make(path);
  const std::string before = read_file(path);
  LocalGenerator without = make_engine(/*with_logprobs=*/false);
  EXPECT_THAT(error_of([&] { make_bank(without, requests_, path, origin()); }),
              testing::HasSubstr("made in another way: requests_fingerprint"));
  LocalGenerator engine = make_engine();
  BankOrigin other = origin();
  other.fingerprint = "all:other";
  EXPECT_THAT(error_of([&] { make_bank(engine, requests_, path, other); }),
              testing::HasSubstr("made in another way: model_fingerprint"));
  auto more = make_requests(queries_, 0, 5, {17, "test"});
  EXPECT_THAT(error_of([&] { make_bank(engine, more, path, origin()); }),
              testing::HasSubstr("made in another way"));
  EXPECT_THAT(error_of([&] {
                make_bank(engine, make_requests(queries_, 0, 4, {17, "other"}), path, origin());
              }),
              testing::HasSubstr("made in another way: stream is test, expected other"));
  EXPECT_EQ(read_file(path), before);
}

TEST_F(BankTest, BadRequestsLeaveNoFiles) {
  LocalGenerator engine = make_engine();
  queries_.push_back({"empty", {}, ""});
  EXPECT_THAT(
      error_of([&] {
        make_bank(engine, make_requests(queries_, 0, 1, {1, "test"}), directory_ / "bank.jsonl", origin());
      }),
      testing::HasSubstr("query empty, sample 0: the prompt is empty"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(BankTest, ReadingChecksModelCountAndVocabulary) {
  const Path path = directory_ / "bank.jsonl";
  make(path);
  EXPECT_THAT(error_of([&] { (void)read_bank(path, {}, "all:other"); }),
              testing::HasSubstr("was sampled from another model (tiny"));
  EXPECT_THAT(error_of([&] { (void)read_bank(path, {.vocab_size = 3}, origin().fingerprint); }),
              testing::HasSubstr("the vocabulary has 3 entries"));
  const std::string content = read_file(path);
  write_file_atomically(path, content.substr(0, content.find('\n') + 1));
  EXPECT_THAT(error_of([&] { (void)read_bank(path, {}, origin().fingerprint); }),
              testing::HasSubstr("its content is not what its description says"));
}

TEST_F(BankTest, AResponseWhoseCheckFailsIsNotKept) {
  const Path path = directory_ / "bank.jsonl";
  make(directory_ / "whole.jsonl");
  size_t num_checks = 0;
  EXPECT_EQ(error_of([&] {
              make(path, {.check = [&] {
                     if (++num_checks == 8) fail("changed");
                   }});
            }),
            "changed");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(make(path).num_kept, 7u);
  EXPECT_EQ(read_file(path), read_file(directory_ / "whole.jsonl"));
}

TEST(MakeRequests, NumbersSamplesFromTheGivenOne) {
  const std::vector<PromptedQuery> queries = {{"a", {1}, "x"}, {"b", {2, 3}, "y"}};
  const auto requests = make_requests(queries, 10, 2, {5, "test"});
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[1].query_id, "a");
  EXPECT_EQ(requests[1].sample, 11u);
  EXPECT_EQ(requests[2].prompt, requests[3].prompt) << "shared, not copied";
  EXPECT_EQ(requests[3].stream.seed, 5u);
}

}  // namespace
}  // namespace ropd::rollout
