#include "io/input_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Ledger : public testing::Test {
 protected:
  Ledger() {
    write("teacher/config.json", "{}");
    write("teacher/model.safetensors", "weights");
    write("teacher/README.md", "card");
    write("bank.jsonl", "row");
    InputLedger ledger(path("inputs.json"));
    hold_all(ledger);
    ledger.set_config("a: 1\n");
    ledger.set_directory("/somewhere");
    ledger.save();
  }
  Path path(const std::string& name) const { return directory_ / name; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(path(name).parent_path());
    write_file_atomically(path(name), text);
  }
  void hold_all(InputLedger& ledger) const {
    ledger.hold("teacher", model_files(path("teacher")));
    ledger.hold("bank", {{"", path("bank.jsonl")}});
  }
  // What a later session says.
  std::string refusal() const {
    try {
      InputLedger ledger(path("inputs.json"));
      hold_all(ledger);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

 private:
  test::TemporaryDirectory directory_;
};

TEST_F(Ledger, ComesBack) {
  const InputLedger first(path("inputs.json"));
  EXPECT_EQ(first.config(), "a: 1\n");
  EXPECT_EQ(first.directory(), "/somewhere");
  EXPECT_EQ(first.hash_of("nobody"), "");
  EXPECT_EQ(first.hash_of("bank"), sha256(std::string(1, '\0') + sha256(sha256("row")) + "\n"));
  EXPECT_EQ(first.text(), read_file(path("inputs.json")));
  EXPECT_EQ(refusal(), "no error");
}

TEST_F(Ledger, AnotherContentIsRefusedByName) {
  write("bank.jsonl", "roW");
  EXPECT_THAT(refusal(), testing::AllOf(HasSubstr("bank (" + path("bank.jsonl").string() + ")"),
                                        HasSubstr("not what the run began with")));
  write("bank.jsonl", "row");
  EXPECT_EQ(refusal(), "no error");
  write("teacher/model.safetensors", "weightS");
  EXPECT_THAT(refusal(), HasSubstr("teacher ("));
}

TEST_F(Ledger, FilesThatComeOrGoAreRefusedButNotTheModelCard) {
  write("teacher/README.md", "another card");
  EXPECT_EQ(refusal(), "no error");
  write("teacher/generation_config.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("generation_config.json): was not there when the run began"));
  fs::remove(path("teacher/generation_config.json"));
  fs::remove(path("teacher/config.json"));
  EXPECT_THAT(refusal(), HasSubstr("config.json): missing"));
}

TEST_F(Ledger, TheSameContentElsewhereIsTheSameInput) {
  fs::rename(path("teacher"), path("moved"));
  InputLedger ledger(path("inputs.json"));
  const std::string before = ledger.hash_of("teacher");
  ledger.hold("teacher", model_files(path("moved")));
  EXPECT_EQ(ledger.hash_of("teacher"), before);
}

TEST_F(Ledger, ACheckSeesAChangeDuringTheSession) {
  InputLedger ledger(path("inputs.json"));
  hold_all(ledger);
  ledger.check();
  fs::last_write_time(path("bank.jsonl"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  ledger.check();  // touched, not changed
  write("teacher/model.safetensors", "wEights");
  EXPECT_THROW(ledger.check(), Error);
}

TEST_F(Ledger, VerifyingReadsEverything) {
  const InputLedger ledger(path("inputs.json"));
  EXPECT_TRUE(ledger.damages({}).empty());
  write("bank.jsonl", "rov");
  fs::remove(path("teacher/config.json"));
  const auto damages = ledger.damages({});
  ASSERT_EQ(damages.size(), 2u);
  EXPECT_THAT(damages[0], HasSubstr("bank.jsonl): its content"));
  EXPECT_THAT(damages[1], HasSubstr("config.json): missing"));
  write("copy.jsonl", "row");
  std::map<std::string, std::vector<InputFile>> elsewhere;
  elsewhere["bank"].push_back({"", path("copy.jsonl")});
  EXPECT_EQ(ledger.damages(elsewhere).size(), 1u);
}

TEST_F(Ledger, KeepsTheConfigThatAChangeReplaces) {
  InputLedger ledger(path("inputs.json"));
  ledger.set_config("a: 2\n");
  ledger.save();
  const InputLedger later(path("inputs.json"));
  EXPECT_EQ(later.config(), "a: 2\n");
  EXPECT_EQ(later.config_before(), "a: 1\n");
}

TEST_F(Ledger, ItsOwnDamageIsSeen) {
  std::string text = read_file(path("inputs.json"));
  const size_t at = text.find("a: 1");
  text[at] = 'b';
  write("inputs.json", text);
  EXPECT_THAT(refusal(), HasSubstr("inputs.json: its content does not match its own SHA-256"));
  write("inputs.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("not the list of a run's inputs"));
}

// A run that begins in a folder with such a name.
TEST_F(Ledger, PathsNeedNotBeUtf8) {
  write("dir\xff/bank.jsonl", "row");
  InputLedger ledger(path("odd.json"));
  ledger.hold("bank", {{"", path("dir\xff/bank.jsonl")}});
  ledger.set_directory(path("dir\xff"));
  ledger.save();
  InputLedger again(path("odd.json"));
  EXPECT_NO_THROW(again.hold("bank", {{"", path("dir\xff/bank.jsonl")}}));
  EXPECT_EQ(again.hash_of("bank"), ledger.hash_of("bank"));
}

TEST_F(Ledger, AsksForTheHashOfEveryFileAsItIsTold) {
  std::vector<std::string> asked;
  const auto damages = InputLedger(path("inputs.json")).damages({}, [&](const Path& file) {
    asked.push_back(file.filename().string());
    return content_hash(file);
  });
  EXPECT_THAT(damages, testing::IsEmpty());
  EXPECT_THAT(asked, testing::UnorderedElementsAre("bank.jsonl", "config.json", "model.safetensors"));
}

}  // namespace
}  // namespace ropd::io
