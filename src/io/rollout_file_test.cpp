#include "io/rollout_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Rollout rollout_of(const std::string& query_id, uint32_t sample) {
  Rollout rollout;
  rollout.query_id = query_id;
  rollout.sample = sample;
  rollout.prompt_ids = {1, 2, 151935};
  for (Token id = 0; id < static_cast<Token>(5 + sample); ++id)
    rollout.response_ids.push_back(100 * id + static_cast<Token>(sample));
  rollout.finish = sample % 2 ? Finish::eos : Finish::length;
  rollout.policy_step = 40;
  rollout.seed = uint64_t{1} << 52;
  rollout.text = "say \"x\"\n\\boxed{é}";
  rollout.answer = "42";
  return rollout;
}

std::string error_of(const std::string& line, const RolloutLimits& limits = {}) {
  try {
    (void)parse_rollout(line, "F.jsonl:7", limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const std::string kMinimal = R"({"query_id":"q","prompt_ids":[1],"response_ids":[2,3,9,4]})";

TEST(RolloutLine, ReadsBackEqualAndWritesEqualBytes) {
  Rollout rollout = rollout_of("q\"1", 3);
  rollout.sampled_logprobs.assign(rollout.response_ids.size(), -0.1f);
  const std::string line = rollout_line(rollout);
  const ParsedRollout parsed = parse_rollout(line, "line", {});
  EXPECT_TRUE(parsed.has_sample);
  EXPECT_EQ(parsed.rollout.query_id, rollout.query_id);
  EXPECT_EQ(parsed.rollout.response_ids, rollout.response_ids);
  EXPECT_EQ(parsed.rollout.sampled_logprobs, rollout.sampled_logprobs);
  EXPECT_EQ(parsed.rollout.text, rollout.text);
  EXPECT_EQ(parsed.rollout.finish, Finish::eos);
  EXPECT_EQ(rollout_line(parsed.rollout), line);
}

TEST(RolloutLine, IsOneLineOfValidUtf8WhateverTheTextHolds) {
  Rollout rollout = rollout_of("q", 0);
  rollout.text = std::string("\xff\n\x01") + '\0';
  const std::string line = rollout_line(rollout);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parse_rollout(line, "line", {}).rollout.text, std::string("\xef\xbf\xbd\n\x01") + '\0');
}

TEST(RolloutLine, TellsAnEmptyTextFromNone) {
  Rollout rollout =
      parse_rollout(R"({"query_id":"q","prompt_ids":[1],"response_ids":[2]})", "line", {}).rollout;
  EXPECT_FALSE(rollout.text);
  EXPECT_EQ(rollout_line(rollout).find("text"), std::string::npos);
  rollout.text = "";
  EXPECT_EQ(parse_rollout(rollout_line(rollout), "line", {}).rollout.text, "");
}

TEST(ParseRollout, NeedsOnlyTheThreeRequiredFields) {
  const ParsedRollout parsed = parse_rollout(kMinimal, "line", {});
  EXPECT_FALSE(parsed.has_sample);
  EXPECT_THAT(parsed.rollout.response_ids, ElementsAre(2, 3, 9, 4));
  EXPECT_EQ(parsed.rollout.finish, Finish::length);
}

TEST(ParseRollout, CutsBehindTheFirstEos) {
  const RolloutLimits limits{.eos_ids = {8, 9}};
  const ParsedRollout parsed = parse_rollout(kMinimal, "line", limits);
  EXPECT_THAT(parsed.rollout.response_ids, ElementsAre(2, 3, 9));
  EXPECT_EQ(parsed.rollout.finish, Finish::eos);
}

TEST(ParseRollout, AcceptsNumbersAsQueryIds) {
  EXPECT_EQ(
      parse_rollout(R"({"query_id":17,"prompt_ids":[1],"response_ids":[2]})", "line", {}).rollout.query_id,
      "17");
}

TEST(ParseRollout, NamesThePlaceAndTheCause) {
  EXPECT_THAT(error_of("{\"query_id\": "), HasSubstr("F.jsonl:7: not JSON"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(kMinimal + "x"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of(R"({"query_id":"q","prompt_ids":[1]})"), HasSubstr("response_ids is missing"));
  EXPECT_THAT(error_of(kMinimal, {.vocab_size = 9}),
              HasSubstr("response_ids[2] is 9, the vocabulary has 9 entries (rollouts of another model?)"));
  EXPECT_THAT(error_of(R"({"query_id":"q","prompt_ids":[-1],"response_ids":[2]})"),
              HasSubstr("prompt_ids[0] is -1"));
  EXPECT_THAT(error_of(R"({"query_id":"q","prompt_ids":[1.5],"response_ids":[2]})"),
              HasSubstr("prompt_ids[0] is not a token id"));
  EXPECT_THAT(error_of(R"({"query_id":"q","prompt_ids":[],"response_ids":[2]})"),
              HasSubstr("prompt_ids is empty"));
  EXPECT_THAT(error_of(R"({"query_id":"q","prompt_ids":[1],"response_ids":[]})"),
              HasSubstr("response_ids is empty"));
  EXPECT_THAT(error_of(R"({"query_id":"q","prompt_ids":[1],"response_ids":7})"),
              HasSubstr("response_ids is not a list"));
  EXPECT_THAT(error_of(R"({"query_id":"q","query_id":"r","prompt_ids":[1],"response_ids":[2]})"),
              HasSubstr("query_id occurs twice"));
  EXPECT_THAT(error_of(R"({"query_id":"q","prompt_ids":[1],"response_ids":[2],"finish":"stop"})"),
              HasSubstr("finish is \"stop\""));
  EXPECT_THAT(error_of(R"({"query_id":"q","prompt_ids":[1],"response_ids":[2],"sampled_logprobs":[1,2]})"),
              HasSubstr("2 sampled_logprobs for 1 response_ids"));
  EXPECT_THAT(error_of(kMinimal, {.max_response_tokens = 3}), HasSubstr("response_ids has 4 tokens"));
  EXPECT_THAT(error_of(std::string(5000, '[')), HasSubstr("not JSON"));
}

TEST(ReadRollouts, NumbersTheSamplesOfRowsThatHaveNone) {
  test::TemporaryDirectory directory;
  write_file_atomically(directory / "b.jsonl", kMinimal + "\n" + kMinimal + "\n");
  const auto rollouts = read_rollouts(directory / "b.jsonl");
  ASSERT_EQ(rollouts.size(), 2u);
  EXPECT_EQ(rollouts[1].sample, 1u);
}

TEST(ReadRollouts, RefusesDuplicatesAndEmptyFiles) {
  test::TemporaryDirectory directory;
  const Path path = directory / "b.jsonl";
  write_rollouts(path, std::vector<Rollout>{rollout_of("q", 1), rollout_of("q", 1)});
  EXPECT_THROW((void)read_rollouts(path), Error);
  write_file_atomically(path, "\n");
  EXPECT_THROW((void)read_rollouts(path), Error);
}

// --- the stream ---

const BankMeta kMeta{.model_fingerprint = "abc",
                     .model = "m",
                     .policy_step = 40,
                     .seed = 1,
                     .max_response_tokens = 16,
                     .precision = "f32",
                     .requests_fingerprint = "r",
                     .count = 12};

std::vector<RolloutKey> requests() {
  std::vector<RolloutKey> keys;
  for (uint32_t sample = 0; sample < 3; ++sample)
    for (const char* query : {"a", "b", "c", "d"}) keys.push_back({query, sample});
  return keys;
}

// Adds what is missing in a scrambled order, at most `limit` rows, every one durable.
void fill(BankStream& stream, size_t limit, size_t stride) {
  const auto keys = requests();
  auto missing = stream.missing();
  std::rotate(missing.begin(),
              missing.begin() + static_cast<long>(stride % std::max<size_t>(missing.size(), 1)),
              missing.end());
  for (size_t i = 0; i < missing.size() && i < limit; ++i) {
    stream.add(rollout_of(keys[missing[i]].query_id, keys[missing[i]].sample));
    stream.sync();
  }
}

std::string uninterrupted_bank() {
  test::TemporaryDirectory directory;
  BankStream stream(directory / "initial.jsonl", requests(), kMeta);
  fill(stream, 100, 0);
  stream.finish();
  return read_file(directory / "initial.jsonl");
}

TEST(BankStream, EndsInRequestOrderWithoutLeftovers) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl";
  BankStream stream(bank, requests(), kMeta);
  EXPECT_EQ(stream.missing().size(), 12u);
  fill(stream, 100, 5);
  EXPECT_FALSE(std::filesystem::exists(bank));
  stream.finish();
  const auto rollouts = read_rollouts(bank);
  const auto keys = requests();
  ASSERT_EQ(rollouts.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ((RolloutKey{rollouts[i].query_id, rollouts[i].sample}), keys[i]);
  EXPECT_FALSE(std::filesystem::exists(directory / "initial.partial.jsonl"));
  EXPECT_EQ(read_bank_meta(bank)->model_fingerprint, "abc");
  EXPECT_EQ(read_file(bank), uninterrupted_bank());
}

// Two commands with the same output: without the lock both write one file, and its lines are not where either
// thinks.
TEST(BankStream, ASecondWriterIsRefusedAndHarmsNothing) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl";
  BankStream first(bank, requests(), kMeta);
  fill(first, 5, 0);
  EXPECT_THROW(BankStream(bank, requests(), kMeta), Error);
  fill(first, 100, 0);
  first.finish();
  EXPECT_EQ(read_file(bank), uninterrupted_bank());
  EXPECT_TRUE(BankStream(bank, requests(), kMeta).missing().empty());  // nothing left to do
}

TEST(BankStream, AKilledWriterLosesNothingDurableAndEndsInTheSameBytes) {
  const std::string expected = uninterrupted_bank();
  for (size_t done = 0; done <= 12; done += 3) {
    test::TemporaryDirectory directory;
    const Path bank = directory / "initial.jsonl";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      BankStream stream(bank, requests(), kMeta);
      fill(stream, done, 7);
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    BankStream stream(bank, requests(), kMeta);
    EXPECT_EQ(stream.num_done(), done);
    fill(stream, 100, 2);
    stream.finish();
    EXPECT_EQ(read_file(bank), expected);
  }
}

TEST(BankStream, CutsATornOrBrokenTail) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl", partial = directory / "initial.partial.jsonl";
  for (const std::string& tail : {std::string("{\"query_id\":\"a\",\"sam"),
                                  std::string("{\"query_id\":\"a\"}\n"), std::string(40, '\0') + "\n"}) {
    std::filesystem::remove(partial);
    {
      BankStream stream(bank, requests(), kMeta);
      fill(stream, 4, 0);
    }
    write_file_atomically(partial, read_file(partial) + tail);
    BankStream stream(bank, requests(), kMeta);
    EXPECT_EQ(stream.num_done(), 4u);
    EXPECT_TRUE(stream.has({"a", 0}));
    EXPECT_FALSE(stream.has({"a", 1}));
  }
  BankStream stream(bank, requests(), kMeta);
  fill(stream, 100, 1);
  stream.finish();
  EXPECT_EQ(read_file(bank), uninterrupted_bank());
}

// Between two sessions the partial file lies open.
TEST(BankStream, ARowThatWasChangedIsSampledAgain) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl", partial = directory / "initial.partial.jsonl";
  {
    BankStream stream(bank, requests(), kMeta);
    fill(stream, 4, 0);
  }
  std::string text = read_file(partial);
  const size_t second = text.find('\n') + 1, digit = text.find("\"response_ids\":[", second) + 16;
  text[digit] = text[digit] == '1' ? '2' : '1';
  write_file_atomically(partial, text);
  BankStream stream(bank, requests(), kMeta);
  EXPECT_EQ(stream.num_done(), 1u) << "from the changed row on";
  fill(stream, 100, 0);
  stream.finish();
  EXPECT_EQ(read_file(bank), uninterrupted_bank());
}

TEST(BankStream, AFinishedBankIsDescribedWithItsContent) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl";
  BankStream stream(bank, requests(), kMeta);
  fill(stream, 100, 0);
  stream.finish();
  EXPECT_EQ(read_bank_meta(bank)->content, sha256_file(bank));
  EXPECT_EQ(bank_damage(bank), "");
  std::string text = read_file(bank);
  const size_t digit = text.find("\"response_ids\":[") + 16;
  text[digit] = text[digit] == '1' ? '2' : '1';
  write_file_atomically(bank, text);
  EXPECT_THAT(bank_damage(bank), HasSubstr("initial.jsonl: its content is not what its description says"));
  remove_bank(bank);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

// A finished bank with one digit of a response changed; every row can still be read.
void write_changed_bank(const Path& bank) {
  {
    BankStream stream(bank, requests(), kMeta);
    fill(stream, 100, 0);
    stream.finish();
  }
  std::string text = read_file(bank);
  const size_t digit = text.find("\"response_ids\":[") + 16;
  text[digit] = text[digit] == '1' ? '2' : '1';
  write_file_atomically(bank, text);
}

TEST(ReadRollouts, RefusesAnotherContentThanItsDescriptionSpeaksOf) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl";
  write_changed_bank(bank);
  try {
    (void)read_rollouts(bank);
    FAIL() << "read in silence";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(bank.string() + ": its content is not what its description says"));
  }
  std::filesystem::rename(bank, directory / "mine.jsonl");
  EXPECT_EQ(read_rollouts(directory / "mine.jsonl").size(), 12u) << "without a description: the user's own";
}

// Descriptions of earlier versions know the number of rows only.
TEST(ReadRollouts, CountsTheRowsOfABankWhoseDescriptionHasNoHash) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl";
  { BankStream stream(bank, requests(), kMeta); }
  write_file_atomically(bank, uninterrupted_bank());
  EXPECT_EQ(read_rollouts(bank).size(), 12u);
  write_file_atomically(bank, uninterrupted_bank().substr(0, uninterrupted_bank().find('\n')));
  EXPECT_THROW((void)read_rollouts(bank), Error);
}

TEST(BankStream, RefusesAFinishedBankThatWasChanged) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl";
  write_changed_bank(bank);
  const std::string before = read_file(bank);
  EXPECT_THROW(BankStream(bank, requests(), kMeta), Error);
  EXPECT_EQ(read_file(bank), before);
}

TEST(BankMeta, NamesAModelWhosePathIsNotUtf8AsFarAsItCanBe) {
  test::TemporaryDirectory directory;
  BankMeta meta = kMeta;
  meta.model = "models/\xff";
  { BankStream stream(directory / "initial.jsonl", requests(), meta); }
  EXPECT_EQ(read_bank_meta(directory / "initial.jsonl")->model, "models/\xef\xbf\xbd");
  EXPECT_NO_THROW(BankStream(directory / "initial.jsonl", requests(), meta));
}

TEST(BankMeta, OfSomethingElseIsNamed) {
  test::TemporaryDirectory directory;
  write_rollouts(directory / "b.jsonl", std::vector<Rollout>{rollout_of("q", 1)});
  write_file_atomically(directory / "b.meta.json", "{\"license\": \"none\"}");
  EXPECT_THAT(bank_damage(directory / "b.jsonl"), HasSubstr("b.meta.json: not the description of a bank"));
}

TEST(BankMeta, FingerprintsOfEarlierVersionsCannotBeCompared) {
  EXPECT_TRUE(fingerprints_agree("all:12", "all:12"));
  EXPECT_FALSE(fingerprints_agree("all:12", "all:13"));
  EXPECT_FALSE(fingerprints_agree("12", "13"));
  EXPECT_TRUE(fingerprints_agree("12", "all:13"));
}

TEST(BankStream, AFinishedBankIsUsedAsItIs) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl";
  write_file_atomically(directory / "initial.partial.jsonl", "left by a kill");
  {
    BankStream stream(bank, requests(), kMeta);
    fill(stream, 100, 0);
    stream.finish();
  }
  write_file_atomically(directory / "initial.partial.jsonl", "left by a kill");
  BankStream again(bank, requests(), kMeta);
  EXPECT_TRUE(again.is_finished());
  EXPECT_TRUE(again.missing().empty());
  EXPECT_FALSE(std::filesystem::exists(directory / "initial.partial.jsonl"));
}

TEST(BankStream, RefusesABankMadeInAnotherWay) {
  test::TemporaryDirectory directory;
  const Path bank = directory / "initial.jsonl";
  { BankStream stream(bank, requests(), kMeta); }
  BankMeta other = kMeta;
  other.seed = 2;
  try {
    BankStream stream(bank, requests(), other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("seed is 1, expected 2"));
  }
  other = kMeta;
  other.model = "moved";
  EXPECT_NO_THROW(BankStream(bank, requests(), other));
}

TEST(BankStream, RefusesWhatWasNotRequestedAndAnEarlyEnd) {
  test::TemporaryDirectory directory;
  BankStream stream(directory / "initial.jsonl", requests(), kMeta);
  EXPECT_THROW(stream.add(rollout_of("z", 0)), Error);
  stream.add(rollout_of("a", 0));
  EXPECT_THROW(stream.add(rollout_of("a", 0)), Error);
  EXPECT_THROW(stream.finish(), Error);
  EXPECT_THROW(BankStream(directory / "twice.jsonl", {{"a", 0}, {"a", 0}}, kMeta), Error);
}

}  // namespace
}  // namespace ropd::io
