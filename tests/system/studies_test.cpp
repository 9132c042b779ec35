// Every file of studies/ as a user checks it first: `ropd study FILE --dry-run` on model folders that hold
// the published config.json of each model and no weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/sealed_json.h"
#include "support/paper_models.h"
#include "support/test_data.h"
#include "support/tiny_world.h"
#include "system/shell.h"
#include "torture/traced_program.h"

namespace ropd {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const Path kStudies = Path(ROPD_SOURCE_DIR) / "studies";

struct Expected {
  size_t runs, banks, training, evaluations,
      waiting;  // nodes before anything is made; runs that wait for tau
};

// By file name. The test fails for a study that is not here.
const std::map<std::string, Expected> kExpected = {
    // Three counts of queries, each with a bank and three runs of its own.
    {"grid", {9, 3, 9, 9, 0}},
    {"query_selection", {2, 0, 2, 2, 0}},
    // To update 55, and from there to 110.
    {"gradients", {1, 0, 2, 0, 0}},
    // Both teachers replay the same bank of the initial student.
    {"sources", {4, 1, 4, 8, 0}},
    // R20, R40, the four ends behind them, early replay, initial-then-current; initial 40 and its two
    // continuations.
    {"replay", {9, 2, 10, 9, 0}},
    // R20, current to 10, full replay, equal mix, and three continuations.
    {"controls", {6, 1, 7, 5, 0}},
    // 3 students x 3 orders: R40, current and fixed; R-OPD when its trigger is known.
    {"annealing", {27, 9, 27, 18, 9}},
    // Each order: seven beginnings, seven ends behind them, onset 0 and onset 15.
    {"onset", {30, 3, 48, 27, 3}},
};

class StudiesOfThePaper : public testing::Test {
 protected:
  StudiesOfThePaper() {
    test::write_paper_models(directory_ / "models");
    std::filesystem::create_directories(directory_ / "data");
    std::ofstream(directory_ / "data/dapo_math_17k_en.jsonl")
        << R"({"id": "a", "problem": "What is 1 + 1?", "answer": "2"})"
        << "\n";
  }
  test::Outcome dry_run(const std::string& name) const {
    return test::run_shell("cd " + directory_.path().string() + " && " + ROPD_PROGRAM + " study " +
                           (kStudies / (name + ".yaml")).string() + " --dry-run");
  }
  const test::TemporaryDirectory directory_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(StudiesOfThePaper, AreExactlyTheOnesThisTestKnows) {
  std::set<std::string> existing, known;
  for (const auto& entry : std::filesystem::directory_iterator(kStudies))
    existing.insert(entry.path().stem());
  for (const auto& [name, expected] : kExpected) known.insert(name);
  EXPECT_EQ(existing, known);
}

// Otherwise the deviation over data orders would miss what sampling adds.
TEST(DataOrders, ChangeTheSamplingSeedToo) {
  const std::regex order(R"(data\.order_seed=(\d+))");
  size_t orders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kStudies)) {
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, order)) continue;
      ++orders;
      EXPECT_THAT(line, HasSubstr("[seed=" + found[1].str() + ",")) << entry.path();
    }
  }
  EXPECT_GE(orders, 6u);
  const std::regex seed(R"(\nseed: (\d+))"), order_seed(R"(\n  order_seed: (\d+))");
  for (const auto& entry : std::filesystem::directory_iterator(Path(ROPD_SOURCE_DIR) / "recipes")) {
    const std::string text = read_file(entry.path());
    std::smatch one, other;
    ASSERT_TRUE(std::regex_search(text, one, seed) && std::regex_search(text, other, order_seed))
        << entry.path();
    EXPECT_EQ(one[1].str(), other[1].str()) << entry.path();
  }
}

TEST_F(StudiesOfThePaper, HaveTheGraphsOfItsTables) {
  for (const auto& [name, expected] : kExpected) {
    const auto outcome = dry_run(name);
    EXPECT_EQ(outcome.exit_code, 0) << name << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(": " + std::to_string(expected.runs) + " runs in ")) << name;
    EXPECT_EQ(count(outcome.out, " bank       "), expected.banks) << name << outcome.out;
    EXPECT_EQ(count(outcome.out, " training   "), expected.training) << name << outcome.out;
    EXPECT_EQ(count(outcome.out, " evaluation "), expected.evaluations) << name << outcome.out;
    EXPECT_EQ(count(outcome.out, "waits for its trigger"), expected.waiting) << name;
    EXPECT_THAT(outcome.out, HasSubstr("nodes to be made: "));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "runs")) << "a dry run leaves nothing behind";
  }
}

// Labels of the paper: tab:surface, fig:validity, eq:interaction.
std::set<std::string> labels_in(const std::string& text) {
  std::set<std::string> labels;
  const std::regex label("(tab|fig|eq):[a-z0-9-]+");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), label); at != std::sregex_iterator(); ++at)
    labels.insert(at->str());
  return labels;
}

TEST_F(StudiesOfThePaper, AndTheirDocumentNameTheSameTables) {
  std::set<std::string> in_studies;
  for (const auto& entry : std::filesystem::directory_iterator(kStudies))
    in_studies.merge(labels_in(read_file(entry.path())));
  EXPECT_EQ(labels_in(read_file(Path(ROPD_SOURCE_DIR) / "docs/paper.md")), in_studies);
}

// 15 iterations of 480; the pieces of a scan count once.
TEST_F(StudiesOfThePaper, CountSharedPartsOnce) {
  // An order of the scan: 15 current iterations, and from each onset to the end: 15 + 11+10+9+8+7+5+3 + 15
  // = 83.
  const uint64_t responses = 3 * (83 * 480 + 2400);
  EXPECT_THAT(dry_run("onset").out, ContainsRegex("nodes to be made: 1[0-9]+,[0-9]+ responses"));
  EXPECT_EQ(responses, 126720u);
  EXPECT_THAT(dry_run("onset").out, HasSubstr("nodes to be made: 126,720 responses"));
}

// What is found in whole studies is in verify_study_test.cpp.
TEST(EvaluationsOfAStudy, NoticeThatTheirModelIsWrittenTo) {
  const test::TinyWorld world;
  write_file_atomically(world.path("base.yaml"), config_to_yaml(world.config("unused")));
  write_file_atomically(world.path("suite.yaml"),
                        "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n"
                        "  - {name: first, file: queries.jsonl, samples: 20}\n");
  write_file_atomically(world.path("study.yaml"),
                        "name: n\nbase: base.yaml\noutput: " + world.path("out").string() +
                            "\nmethods:\n  - {name: current, stages: [{source: current}]}\nevaluations:\n" +
                            "  - {name: tiny, suite: " + world.path("suite.yaml").string() + ", data: " +
                            world.path("").string() + ", max_tokens: 8, precision: f32, models: true}\n");
  std::filesystem::create_directory(world.path("out"));
  bool is_written = false;
  const auto end = torture::run_traced(
      {.command = {ROPD_PROGRAM, "study", world.path("study.yaml").string(), "--quiet", "--threads", "1"},
       .folder = world.path("out"),
       .fault = {},
       .before_call =
           [&](uint64_t) {
             for (const auto& entry : std::filesystem::recursive_directory_iterator(world.path("out")))
               if (entry.path().filename() == "responses.jsonl" && entry.file_size() > 0 && !is_written) {
                 for (const char* model : {"student", "teacher"}) {  // whichever is evaluated first
                   const Path weights = world.path(model) / "model.safetensors";
                   const std::string same = read_file(weights);
                   std::ofstream(weights) << same;
                 }
                 is_written = true;
               }
           },
       .on_change = {}});
  ASSERT_TRUE(is_written);
  EXPECT_EQ(end.exit_code, 1) << end.err;
  EXPECT_THAT(end.err, HasSubstr("/model.safetensors: was written to while this command used it"));
}

TEST(VerifyAStudy, NamesADiagnosisThatWasChanged) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "diagnoses");
  write_file_atomically(directory / "tiny.graph.json", "{}");
  std::string text = sealed({{"kl", 0.25},
                             {"less_likely", 0.5},
                             {"cumulative", Json::array()},
                             {"position_kl", Json::array()},
                             {"response_less_likely", Json::array()}})
                         .dump();
  write_file_atomically(directory / "diagnoses/a.json", text);
  const auto whole = test::run_ropd("verify " + directory.path().string());
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("whole      diagnoses/ (1 files)"));
  text.replace(text.find("0.25"), 4, "0.35");
  write_file_atomically(directory / "diagnoses/a.json", text);
  const auto changed = test::run_ropd("verify " + directory.path().string());
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_THAT(changed.err, HasSubstr("diagnoses/a.json: its content does not fit its checksum"));
}

}  // namespace
}  // namespace ropd
