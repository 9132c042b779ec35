#include "study/verify_study.h"

#include <gmock/gmock.h>

#include "base/progress.h"
#include "study/study.h"
#include "support/whole_run.h"

namespace ropd::study {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(IsStudyFolder, KnowsAFolderThatWasWorkedIn) {
  const test::TemporaryDirectory directory;
  EXPECT_FALSE(is_study_folder(directory / "absent"));
  EXPECT_FALSE(is_study_folder(directory.path()));
  write_file_atomically(directory / "tiny.graph.json", "{}");
  EXPECT_TRUE(is_study_folder(directory.path()));
}

// A study of everything that a folder can hold: bank, training, evaluation, prefixes, diagnosis.
class VerifyStudy : public testing::Test {
 protected:
  VerifyStudy() {
    set_log_level(LogLevel::quiet);
    set_progress_mode(ProgressMode::quiet);
    write_file_atomically(world.path("base.yaml"), config_to_yaml(world.config("unused")));
    write_file_atomically(world.path("suite.yaml"),
                          "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n"
                          "  - {name: first, file: queries.jsonl, samples: 1}\n");
    write_file_atomically(
        world.path("study.yaml"),
        "name: tiny\nbase: base.yaml\noutput: " + folder.string() +
            "\nset: [train.iterations=1]\nmethods: [{name: replay, stages: [{source: initial}]}]\n" +
            "evaluations:\n  - {name: tiny, suite: " + world.path("suite.yaml").string() +
            ", data: " + world.path("").string() +
            ", max_tokens: 4, precision: f32}\ndiagnoses:\n  - {name: kl, samples: 1, positions: 2, sources: "
            "[{name: theta0}], students: [{name: theta0}, {name: R, method: replay}]}\n");
    Study study(world.path("study.yaml"));
    EXPECT_TRUE(study.work({}));
    (void)study.write_tables();  // which links evaluations into the runs
  }
  ~VerifyStudy() override {
    set_log_level(LogLevel::info);
    set_progress_mode(ProgressMode::automatic);
  }
  // The only file below a folder of the study with such a name.
  Path find(const std::string& below, const std::string& ending) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / below))
      if (entry.path().string().ends_with(ending)) return entry.path();
    ADD_FAILURE() << "no " << ending << " in " << below;
    return {};
  }
  // What verify says once a digit behind `key` is another one; the file is as it was afterwards.
  std::vector<std::string> damages_with_change(const Path& path, const std::string& key) const {
    const std::string text = read_file(path);
    const size_t digit = text.find_first_of("0123456789", text.find(key) + key.size());
    EXPECT_LT(digit, text.size()) << path;
    std::string changed = text;
    changed[digit] = changed[digit] == '1' ? '2' : '1';
    write_file_atomically(path, changed);
    const auto damages = verify_study(folder).damages;
    write_file_atomically(path, text);
    return damages;
  }
  const test::TinyWorld world;
  const Path folder = world.path("study");
};

TEST_F(VerifyStudy, FindsAWholeOneWhole) {
  const auto result = verify_study(folder);
  EXPECT_THAT(result.damages, IsEmpty());
  EXPECT_THAT(result.blemishes, IsEmpty());
  EXPECT_THAT(result.found, Contains("inputs.json"));
  EXPECT_THAT(result.found, Contains(HasSubstr("run ")));
  EXPECT_THAT(result.found, Contains("banks/ (1 files)"));
  EXPECT_THAT(result.found, Contains("prefixes/ (1 files)"));
  EXPECT_THAT(result.found, Contains(HasSubstr("evaluation ")));
  EXPECT_THAT(result.found, Contains("diagnoses/ (2 files)"));
}

TEST_F(VerifyStudy, NamesWhateverWasChangedAndNothingElse) {
  const std::pair<Path, const char*> changes[] = {{folder / "inputs.json", "\"model "},
                                                  {find("runs", "states.json"), "\"step\""},
                                                  {find("runs", "config.yaml"), "minibatch:"},
                                                  {find("banks", ".jsonl"), "\"response_ids\""},
                                                  {find("prefixes", ".jsonl"), "\"policy_step\""},
                                                  {find("evaluations", "summary.json"), "\"accuracy\""},
                                                  {find("evaluations", "responses.jsonl"), "\"sample\""},
                                                  {find("diagnoses", ".json"), "\"kl\""}};
  for (const auto& [path, key] : changes)
    EXPECT_THAT(damages_with_change(path, key), ElementsAre(HasSubstr(path.filename().string()))) << path;
  EXPECT_THAT(verify_study(folder).damages, IsEmpty());
}

TEST_F(VerifyStudy, ADamagedTimeIsABlemish) {
  write_file_atomically(find("times", ".json"), "{}");
  const auto result = verify_study(folder);
  EXPECT_THAT(result.damages, IsEmpty());
  EXPECT_THAT(result.blemishes, ElementsAre(HasSubstr("not the time of a node")));
}

}  // namespace
}  // namespace ropd::study
