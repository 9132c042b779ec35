#include "eval/evaluate.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/sealed_json.h"
#include "base/stop.h"
#include "base/threads.h"
#include "eval/responses.h"
#include "io/checked_lines.h"
#include "rollout/fingerprint.h"
#include "rollout/local_generator.h"
#include "support/byte_tokenizer.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::eval {
namespace {

using ::testing::HasSubstr;

// A random model over bytes that answers two benchmarks with equal question ids.
class Evaluate : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  text::Tokenizer tokenizer_ = test::byte_tokenizer();
  text::ChatTemplate template_ = text::ChatTemplate::parse(
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", "template");
  Suite suite_{.name = "s", .fingerprint = "suite"};
  size_t threads_before_ = num_threads();
  model::Parameters parameters_ = test::random_parameters(config(), 3);

  void SetUp() override {
    set_log_level(LogLevel::warnings);
    set_progress_mode(ProgressMode::quiet);
    set_num_threads(1);  // the model is too small to share
    const std::vector<Query> questions = {{"q1", {{"user", "1+1?"}}, "2"}, {"q2", {{"user", "2+2?"}}, "4"}};
    suite_.benchmarks.push_back({.name = "a", .samples = 3, .questions = questions});
    suite_.benchmarks.push_back({.name = "b", .samples = 2, .questions = questions});
  }
  void TearDown() override { set_num_threads(threads_before_); }
  static ModelConfig config() {
    ModelConfig config = test::tiny_config(Architecture::qwen3);
    config.vocab_size = 256;
    return config;
  }
  rollout::LocalGenerator engine(double temperature = 1, int64_t max_tokens = 24) {
    rollout::EngineConfig engine_config;
    engine_config.max_response_tokens = max_tokens;
    engine_config.eos_ids = {5, 11, 40};
    engine_config.memory_bytes = 16 << 20;
    engine_config.sampling.temperature = temperature;
    return {parameters_.weights(), model::Precision::f32, engine_config};
  }
  GenerationResult generate(const std::string& folder, uint64_t seed = 1, double temperature = 1) {
    auto used = engine(temperature);
    return generate_responses(used, suite_, tokenizer_, template_, directory_ / folder,
                              {"m", rollout::weights_fingerprint(parameters_.weights()), seed});
  }
  std::string responses(const std::string& folder) {
    return read_file(directory_ / folder / "responses.jsonl");
  }
  // Finished lines as they lie in the folder of an unfinished evaluation.
  static std::string unfinished(std::string_view finished) {
    std::string lines;
    for (size_t begin = 0, end; (end = finished.find('\n', begin)) != std::string_view::npos; begin = end + 1)
      lines += io::with_checksum(finished.substr(begin, end - begin)) + "\n";
    return lines;
  }
  // A folder that was killed: the record of another one without the hash of its responses, and these lines.
  void write_killed(const std::string& folder, const std::string& like, const std::string& lines) {
    std::filesystem::create_directories(directory_ / folder);
    Json record = read_generation_record(directory_ / like);
    record.erase("responses_sha256");
    write_file_atomically(directory_ / folder / "generation.json", sealed(record).dump(2));
    write_file_atomically(directory_ / folder / "responses.jsonl", lines);
  }
  std::string error(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& failure) {
      return failure.what();
    }
    return "";
  }
};

TEST_F(Evaluate, GeneratesEveryResponseInRequestOrder) {
  const auto result = generate("full");
  EXPECT_TRUE(result.is_finished);
  EXPECT_EQ(result.run.num_done, 10u);
  const ResponseFile file(directory_ / "full/responses.jsonl", suite_);
  EXPECT_TRUE(file.missing().empty());
  EXPECT_THAT(responses("full"),
              ::testing::StartsWith("{\"benchmark\":\"a\",\"query_id\":\"q1\",\"sample\":0"));
  // Equal ids in two benchmarks draw different numbers.
  EXPECT_NE(response_text(*file.line({0, 0, 0}), ""), response_text(*file.line({1, 0, 0}), ""));
}

TEST_F(Evaluate, AnotherCapOrSuiteTakesOtherSamples) {
  generate("full");
  auto shorter = engine(1, 12);
  const GenerationOrigin origin{"m", rollout::weights_fingerprint(parameters_.weights()), 1};
  generate_responses(shorter, suite_, tokenizer_, template_, directory_ / "short", origin);
  Suite renamed = suite_;
  renamed.name = "other";
  auto same = engine();
  generate_responses(same, renamed, tokenizer_, template_, directory_ / "renamed", origin);
  const ResponseFile full(directory_ / "full/responses.jsonl", suite_);
  const ResponseFile cut(directory_ / "short/responses.jsonl", suite_);
  const ResponseFile other(directory_ / "renamed/responses.jsonl", suite_);
  size_t num_equal = 0;
  for (const ResponseId id : all_responses(suite_)) {
    const auto first_tokens = [&](const ResponseFile& file) {
      Json ids = parse_json(*file.line(id), "response").at("response_ids");
      if (ids.size() > 3) ids.erase(ids.begin() + 3, ids.end());
      return ids;
    };
    num_equal += first_tokens(full) == first_tokens(cut);
    num_equal += first_tokens(full) == first_tokens(other);
  }
  EXPECT_LT(num_equal, 3u) << "of 20, by chance at most: an end token may come first";
  EXPECT_THAT(
      error([&] { generate_responses(same, renamed, tokenizer_, template_, directory_ / "full", origin); }),
      HasSubstr("stream is \"evaluation of s at 24 tokens\""));
}

TEST_F(Evaluate, ContinuedEvaluationEqualsAnUninterruptedOne) {
  generate("full");
  const std::string whole = responses("full"), lines = unfinished(whole);
  for (const size_t cut : {lines.size() / 3, lines.size() / 2, lines.size() - 5}) {
    write_killed("cut", "full", lines.substr(0, cut));
    const auto result = generate("cut");
    EXPECT_GT(result.num_kept, 0u);
    EXPECT_EQ(result.num_kept + result.run.num_done, 10u);
    EXPECT_EQ(responses("cut"), whole);
  }
}

TEST_F(Evaluate, StopRequestLeavesAFolderThatGoesOn) {
  request_stop();
  const auto stopped = generate("stopped");
  clear_stop_request();
  EXPECT_FALSE(stopped.is_finished);
  EXPECT_TRUE(generate("stopped").is_finished);
  generate("full");
  EXPECT_EQ(responses("stopped"), responses("full"));
}

TEST_F(Evaluate, FinishedFolderIsNotTouched) {
  generate("full");
  const auto again = generate("full");
  EXPECT_EQ(again.num_kept, 10u);
  EXPECT_EQ(again.run.num_done, 0u);
}

TEST_F(Evaluate, WhatAKillLeftUnsortedIsSortedByTheNextStart) {
  generate("full");
  const std::string sorted = responses("full"), record = read_file(directory_ / "full/generation.json");
  const size_t first = sorted.find('\n') + 1;
  const std::string arrived = sorted.substr(first) + sorted.substr(0, first);
  for (const std::string& lines : {unfinished(arrived), arrived}) {  // plain: an earlier version's
    write_killed("killed", "full", lines);
    EXPECT_TRUE(generate("killed").is_finished);
    EXPECT_EQ(responses("killed"), sorted);
    EXPECT_EQ(read_file(directory_ / "killed/generation.json"), record);
  }
  // Between the hash and the file in its place.
  write_file_atomically(directory_ / "full/responses.jsonl", unfinished(arrived));
  EXPECT_TRUE(generate("full").is_finished);
  EXPECT_EQ(responses("full"), sorted);
}

TEST_F(Evaluate, AChangedLineOfAnUnfinishedFolderIsSampledAgain) {
  generate("full");
  const std::string whole = responses("full");
  std::string lines = unfinished(whole);
  char& digit = lines[lines.rfind("\"response_ids\":[") + 16];
  digit = digit == '1' ? '2' : '1';
  write_killed("changed", "full", lines);
  EXPECT_EQ(generate("changed").run.num_done, 1u);
  EXPECT_EQ(responses("changed"), whole);
}

TEST_F(Evaluate, ChangedResponsesOfAFinishedFolderAreRefused) {
  generate("full");
  std::string changed = responses("full");
  char& digit = changed[changed.rfind("\"response_ids\":[") + 16];
  digit = digit == '1' ? '2' : '1';
  write_file_atomically(directory_ / "full/responses.jsonl", changed);
  EXPECT_THAT(error([&] { generate("full"); }), HasSubstr("responses.jsonl: is not what was sampled"));
  EXPECT_THAT(error([&] { check_generated(directory_ / "full"); }), HasSubstr("is not what was sampled"));
  EXPECT_THAT(evaluation_damages(directory_ / "full"), testing::SizeIs(1));
  std::filesystem::remove(directory_ / "full/generation.json");
  EXPECT_EQ(error([&] { check_generated(directory_ / "full"); }), "") << "of unknown origin";
}

TEST_F(Evaluate, ZerosInAFinishedFolderAreDamageAndNoUnfinishedLine) {
  generate("whole");
  std::string text = responses("whole");
  text[3] = '\0';
  write_file_atomically(directory_ / "whole" / "responses.jsonl", text);
  EXPECT_THAT(evaluation_damages(directory_ / "whole"), testing::SizeIs(1));
}

TEST_F(Evaluate, AChangedRecordIsRefused) {
  generate("full");
  const Path path = directory_ / "full/generation.json";
  const std::string record = read_file(path);
  std::string changed = record;
  changed.replace(changed.find("\"model\": \"m\""), 12, "\"model\": \"n\"");
  write_file_atomically(path, changed);
  EXPECT_THAT(error([&] { generate("full"); }), HasSubstr("generation.json: its content does not fit"));
  changed = record;
  changed.replace(changed.find("checksum"), 8, "checksul");
  write_file_atomically(path, changed);
  EXPECT_THAT(error([&] { generate("full"); }), HasSubstr("unknown field 'checksul'"));
}

TEST_F(Evaluate, FolderOfAnotherEvaluationIsRefusedByName) {
  generate("full");
  EXPECT_THAT(error([&] { generate("full", 2); }), HasSubstr("seed is 1, this evaluation has 2"));
  EXPECT_THAT(error([&] { generate("full", 1, 0.5); }),
              HasSubstr("temperature is 1.0, this evaluation has 0.5"));
  parameters_ = test::random_parameters(config(), 4);
  EXPECT_THAT(error([&] { generate("full"); }), HasSubstr("model_fingerprint is"));
}

TEST_F(Evaluate, ResponsesWithoutOriginAreNotContinued) {
  generate("full");
  std::filesystem::remove(directory_ / "full/generation.json");
  EXPECT_THAT(error([&] { generate("full"); }), HasSubstr("origin is not known"));
}

TEST_F(Evaluate, ASecondWriterIsRefusedAndHarmsNothing) {
  generate("full");
  const std::string whole = responses("full");
  const Path path = directory_ / "busy/responses.jsonl";
  const std::string first = unfinished(whole.substr(0, whole.find('\n') + 1));
  write_killed("busy", "full", first);
  {
    const AppendFile other(path);
    EXPECT_THAT(error([&] { generate("busy"); }), HasSubstr("another process is writing this file"));
    EXPECT_EQ(responses("busy"), first);
  }
  generate("busy");
  EXPECT_EQ(responses("busy"), whole);
}

TEST_F(Evaluate, WritesSummaryAndTable) {
  generate("full");
  const ResponseFile file(directory_ / "full/responses.jsonl", suite_);
  const auto evaluation = grade_responses(suite_, file, tokenizer_, {.budgets = {8, 24}});
  write_evaluation(directory_ / "full", evaluation, read_generation_record(directory_ / "full"));
  const Json summary = parse_json(read_file(directory_ / "full/summary.json"), "summary");
  EXPECT_EQ(summary["about"]["max_tokens"], 24);
  EXPECT_EQ(summary["about"]["responses_sha256"], sha256_file(directory_ / "full/responses.jsonl"));
  EXPECT_EQ(summary, sealed(summary));
  EXPECT_EQ(summary["benchmarks"].size(), 2u);
  EXPECT_THAT(read_file(directory_ / "full/summary.md"), HasSubstr("Budget 24 tokens"));
}

TEST_F(Evaluate, ARecordWithAHashThatIsNoTextIsNamed) {
  std::filesystem::create_directories(directory_ / "odd");
  write_file_atomically(directory_ / "odd/responses.jsonl", "{}\n");
  write_file_atomically(directory_ / "odd/generation.json", R"({"responses_sha256": 5})");
  EXPECT_THAT(evaluation_damages(directory_ / "odd"),
              ::testing::ElementsAre(HasSubstr("generation.json: responses_sha256 is 5, expected a text")));
}

TEST_F(Evaluate, AModelInAFolderWhoseNameIsNotUtf8IsNamedAsFarAsItCanBe) {
  auto used = engine();
  const auto make = [&] {
    return generate_responses(
        used, suite_, tokenizer_, template_, directory_ / "full",
        {"models/\xff", rollout::weights_fingerprint(parameters_.weights()), 1, "suite\xff.yaml", "data"});
  };
  EXPECT_TRUE(make().is_finished);
  EXPECT_EQ(read_generation_record(directory_ / "full").at("model"), "models/\xef\xbf\xbd");
  EXPECT_EQ(make().num_kept, 10u) << "the same evaluation";
}

TEST_F(Evaluate, AResponseWhoseCheckFailsIsNotKept) {
  auto used = engine();
  const auto make = [&](const std::function<void()>& check) {
    return generate_responses(used, suite_, tokenizer_, template_, directory_ / "full",
                              {"m", rollout::weights_fingerprint(parameters_.weights()), 1}, check);
  };
  int num_checks = 0;
  EXPECT_EQ(error([&] {
              make([&] {
                if (++num_checks == 4) fail("changed");
              });
            }),
            "changed");
  EXPECT_EQ(make({}).num_kept, 3u);
}

}  // namespace
}  // namespace ropd::eval
