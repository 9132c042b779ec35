// Every file of recipes/ as a user checks it first: `ropd plan RECIPE` on model folders that hold
// the published config.json of each model and no weights. Budgets are the paper's, and a run that does not
// fit this machine is refused with its numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "support/paper_models.h"
#include "support/test_data.h"
#include "system/shell.h"

namespace ropd {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const Path kRecipes = Path(ROPD_SOURCE_DIR) / "recipes";

struct Expected {
  std::string student, teacher;
  uint64_t consumed, steps, iterations;
  std::vector<uint64_t> minibatches;
  std::string curriculum;
};

const std::vector<uint64_t> kPaperSplit = {128, 128, 128, 96};
constexpr const char* kReplay = "current until trigger, then initial";

// By file name. The test fails for a recipe that is not here.
const std::map<std::string, Expected> kExpected = {
    {"qwen3-0.6b-ropd", {"Qwen3-0.6B", "Qwen3-4B-Instruct-2507", 7200, 60, 15, kPaperSplit, kReplay}},
    {"qwen3-0.6b-current", {"Qwen3-0.6B", "Qwen3-4B-Instruct-2507", 7200, 60, 15, kPaperSplit, "current"}},
    {"qwen3-0.6b-fixed",
     {"Qwen3-0.6B", "Qwen3-4B-Instruct-2507", 7200, 60, 15, kPaperSplit, "current x 10, then initial"}},
    {"qwen3-0.6b-initial", {"Qwen3-0.6B", "Qwen3-4B-Instruct-2507", 7200, 60, 15, kPaperSplit, "initial"}},
    {"qwen3-1.7b-ropd", {"Qwen3-1.7B", "Qwen3-4B-Instruct-2507", 7200, 60, 15, kPaperSplit, kReplay}},
    {"qwen3-8b-ropd", {"Qwen3-8B", "Qwen3-30B-A3B-Instruct-2507", 7200, 60, 15, kPaperSplit, kReplay}},
    {"grid-n8-m1",
     {"Qwen3-0.6B", "Qwen3-4B-Instruct-2507", 14080, 110, 1, std::vector<uint64_t>(110, 128), "initial"}},
    {"grid-n8-m10",
     {"Qwen3-0.6B", "Qwen3-4B-Instruct-2507", 14080, 110, 10, std::vector<uint64_t>(11, 128), "current"}},
    {"grid-n8-m110", {"Qwen3-0.6B", "Qwen3-4B-Instruct-2507", 14080, 110, 110, {128}, "current"}},
    {"lab", {"student", "teacher", 7200, 60, 15, kPaperSplit, kReplay}},
};

using test::Outcome;

// Plainly: nothing here has to survive a power cut.
void write(const Path& path, const std::string& text) { std::ofstream(path) << text; }

class Recipes : public testing::Test {
 protected:
  Recipes() {
    test::write_paper_models(directory_.path());
    write(directory_ / "queries.jsonl", R"({"id": "a", "problem": "What is 1 + 1?", "answer": "2"})"
                                        "\n");
  }
  std::string at(const std::string& name) const { return (directory_ / name).string(); }

  Outcome run(const std::string& command, const std::string& recipe, const std::string& more) const {
    const Expected& expected = kExpected.at(recipe);
    return test::run_ropd(command + " " + (kRecipes / (recipe + ".yaml")).string() +
                          " student=" + at(expected.student) + " teacher=" + at(expected.teacher) +
                          " output=" + at("run") + " data.queries=" + at("queries.jsonl") + " " + more);
  }
  Outcome plan_of(const std::string& recipe, const std::string& more = "") const {
    return run("plan --guess-time", recipe, more);
  }
  Outcome dry_run(const std::string& recipe, const std::string& more = "") const {
    return run("train --dry-run", recipe, more);
  }

  const test::TemporaryDirectory directory_;
};

TEST_F(Recipes, AreExactlyTheOnesThisTestKnows) {
  std::set<std::string> existing, known;
  for (const auto& entry : std::filesystem::directory_iterator(kRecipes))
    existing.insert(entry.path().filename());
  for (const auto& [name, expected] : kExpected) known.insert(name + ".yaml");
  EXPECT_EQ(existing, known);
}

// The folders in the recipe are the ones whose stand-ins the other tests use.
TEST_F(Recipes, NameTheModelsOfThePaper) {
  for (const auto& [name, expected] : kExpected) {
    const std::string text = read_file(kRecipes / (name + ".yaml"));
    const std::string folder = name == "lab" ? "lab/models/" : "models/";
    EXPECT_THAT(text, HasSubstr("\nstudent: " + folder + expected.student)) << name;
    EXPECT_THAT(text, HasSubstr("\nteacher: " + folder + expected.teacher)) << name;
    EXPECT_THAT(text, HasSubstr("\noutput: runs/" + (name == "lab" ? "lab-ropd" : name) + "\n")) << name;
  }
}

TEST_F(Recipes, HaveThePapersBudgetsAndAreRefusedOnlyForWhatTheMachineLacks) {
  for (const auto& [name, expected] : kExpected) {
    const Outcome outcome = plan_of(name, "--json");
    ASSERT_FALSE(outcome.out.empty()) << name << ": " << outcome.err;
    const Json plan = parse_json(outcome.out, name);
    EXPECT_EQ(plan["C"], expected.consumed) << name;
    EXPECT_EQ(plan["U"], expected.steps) << name;
    EXPECT_EQ(plan["iterations"], expected.iterations) << name;
    EXPECT_EQ(plan["minibatches"], expected.minibatches) << name;
    EXPECT_EQ(plan["curriculum"], expected.curriculum) << name;
    // The plan itself says what the machine has; the verdict must follow from it.
    const bool fits_memory = plan["memory_bytes"] <= plan["available_bytes"],
               fits_disk = plan["disk_bytes"] <= plan["free_disk_bytes"];
    EXPECT_EQ(outcome.exit_code, fits_memory && fits_disk ? 0 : 1) << name << outcome.err;
    const std::string refusal = !fits_memory ? "the run needs [0-9.]+ .B of memory, [0-9.]+ .B are available "
                                               "\\(most in [a-z ]+; (it fits|not even) with '?[a-z_.]+="
                                : !fits_disk ? "the run needs about [0-9.]+ .B of disk, [0-9.]+ .B are free"
                                             : "";
    if (!refusal.empty()) {
      EXPECT_THAT(outcome.err, ContainsRegex(refusal)) << name;
    }
    EXPECT_FALSE(std::filesystem::exists(at("run"))) << "a plan leaves nothing behind";
  }
}

TEST_F(Recipes, ArePlannedForOtherMachinesWithWhatWouldFit) {
  const auto proposal = [&](const std::string& recipe, const char* gigabytes) {
    const Json plan = parse_json(plan_of(recipe, std::string("--json --memory-gb ") + gigabytes).out, recipe);
    EXPECT_LE(plan["proposal"]["memory_bytes"], std::stod(gigabytes) * 1e9) << recipe;
    return plan["proposal"]["settings"];
  };
  EXPECT_TRUE(
      parse_json(plan_of("qwen3-0.6b-ropd", "--json --memory-gb 512").out, "plan")["proposal"].is_null());
  EXPECT_FALSE(proposal("qwen3-1.7b-ropd", "24").empty());
  EXPECT_THAT(proposal("qwen3-8b-ropd", "64").dump(), HasSubstr("adapter"));
}

TEST_F(Recipes, PrintTheBudgetForPeople) {
  EXPECT_THAT(plan_of("lab").out,
              HasSubstr("15 iterations, C = 7200 responses, U = 60 steps; an iteration is "
                        "128 + 128 + 128 + 96 responses\n"));
}

TEST_F(Recipes, StagesAreTriedForThePlan) {
  const Json plan = parse_json(run("plan", "lab", "--json").out, "plan");
  double sum = 0;
  for (const char* stage : {"sampling", "scoring by the teacher", "updates"}) {
    EXPECT_GT(plan["seconds"][stage], 0.0) << stage;
    sum += plan["seconds"][stage].get<double>();
  }
  EXPECT_EQ(plan["seconds"]["scoring by the student"], 0.0) << "sampling gives its scores";
  EXPECT_DOUBLE_EQ(plan["seconds_per_iteration"], sum);
  EXPECT_GT(plan["seconds"]["bank"], 0.0);
  EXPECT_TRUE(plan["seconds"]["measured"]);
}

TEST_F(Recipes, LabIsReadyToRunOnTheShippedModels) {
  write(directory_ / "problems.jsonl", R"({"id": "a", "problem": "3acb?", "answer": "5"})"
                                       "\n");
  const std::string models = (Path(ROPD_SOURCE_DIR) / "lab/models").string();
  const Outcome outcome = dry_run("lab", "student=" + models + "/student teacher=" + models +
                                             "/teacher data.queries=" + at("problems.jsonl"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("queries      1 of 1 in "));
  EXPECT_THAT(outcome.out, HasSubstr("first prompt a, 5 ids: 3 10 12 11 22\n"));
  EXPECT_FALSE(std::filesystem::exists(at("run"))) << "a dry run leaves nothing behind";
}

// It refuses what training would refuse.
TEST_F(Recipes, ADryRunNeedsTheWeightsAndAFreeOutput) {
  const Outcome without = dry_run("lab");
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.err, HasSubstr("holds neither model.safetensors nor"));
  const std::string models = (Path(ROPD_SOURCE_DIR) / "lab/models").string();
  std::filesystem::create_directories(directory_ / "run");
  write(directory_ / "run" / "thesis.tex", "x");
  write(directory_ / "problems.jsonl", R"({"id": "a", "problem": "3acb?", "answer": "5"})"
                                       "\n");
  const Outcome taken = dry_run("lab", "student=" + models + "/student teacher=" + models +
                                           "/teacher data.queries=" + at("problems.jsonl"));
  EXPECT_EQ(taken.exit_code, 1);
  EXPECT_THAT(taken.err, HasSubstr("is not empty (thesis.tex)"));
}

// Published counts: 596,049,920 (0.6B), 1.7 B, 4.0 B, 8.2 B, 30.5 B.
TEST_F(Recipes, StandInsHaveThePublishedSizes) {
  EXPECT_THAT(plan_of("qwen3-0.6b-ropd").out, ContainsRegex("student +596\\.0M .*\n.*teacher +4\\.0B "));
  EXPECT_THAT(plan_of("qwen3-8b-ropd").out, ContainsRegex("student +8\\.2B .*\n.*teacher +30\\.5B "));
  EXPECT_THAT(plan_of("qwen3-1.7b-ropd").out, ContainsRegex("student +1\\.7B "));
}

TEST_F(Recipes, FollowOverrides) {
  const Json plan = parse_json(plan_of("qwen3-0.6b-initial",
                                       "--json train.iterations=10 "
                                       "curriculum.bank.responses=4800")
                                   .out,
                               "matched comparison");
  EXPECT_EQ(plan["C"], 4800);
  EXPECT_EQ(plan["U"], 40);
}

}  // namespace
}  // namespace ropd
