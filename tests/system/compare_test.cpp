// ropd compare as a user meets it: differences and interactions of evaluations on disk, settings that differ,
// the formats of its tables.
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/json.h"
#include "support/test_data.h"
#include "system/shell.h"

namespace ropd {
namespace {

using test::run_ropd;
using ::testing::HasSubstr;
using ::testing::Not;

class Compare : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;

  // An evaluation of one benchmark with four questions; accuracy per question, the same at 64 and 128 tokens.
  std::string evaluation(const std::string& name, const std::vector<double>& accuracy,
                         double temperature = 1.0) {
    Json lines = Json::array(), means = Json::array();
    std::vector<std::string> ids;
    for (size_t q = 0; q < accuracy.size(); ++q) ids.push_back("q" + std::to_string(q));
    const std::vector<double> ones(accuracy.size(), 1.0), zeros(accuracy.size(), 0.0);
    for (const int budget : {64, 128}) {
      means.push_back({{"budget", budget}});
      lines.push_back({{"budget", budget},
                       {"pass_at_k", Json::array()},
                       {"accuracy_by_length", Json::array()},
                       {"questions",
                        {{"accuracy", accuracy},
                         {"majority", zeros},
                         {"extraction", ones},
                         {"length", std::vector<double>(accuracy.size(), 20.0)},
                         {"at_cap", zeros},
                         {"extracted_at_cap", zeros},
                         {"responses", std::vector<int>(accuracy.size(), 4)}}}});
    }
    const Json summary = {{"format", 1},
                          {"suite", "s"},
                          {"suite_fingerprint", "f"},
                          {"about", {{"temperature", temperature}, {"max_tokens", 128}}},
                          {"budgets", means},
                          {"benchmarks",
                           {{{"name", "digits"},
                             {"samples", 4},
                             {"questions_sha256", "h"},
                             {"question_ids", ids},
                             {"budgets", lines}}}}};
    const Path folder = directory_ / name;
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / "summary.json", summary.dump());
    return folder.string();
  }
};

TEST_F(Compare, InteractionIsTheDifferenceOfDifferences) {
  const std::string a = evaluation("a", {1.0, 0.75, 0.5, 0.5}), b = evaluation("b", {0.5, 0.5, 0.25, 0.0}),
                    c = evaluation("c", {0.5, 0.25, 0.25, 0.25}),
                    d = evaluation("d", {0.25, 0.25, 0.0, 0.25});
  const auto outcome = run_ropd("--json compare --draws 500 --measures accuracy,pass@4 --interaction " + a +
                                " " + b + " " + c + " " + d);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = parse_json(outcome.out, "compare");
  ASSERT_EQ(json["effects"].size(), 2u);
  const Json& accuracy = json["effects"][0]["budgets"][1]["mean"];
  // (0.6875 - 0.3125) - (0.3125 - 0.1875)
  EXPECT_NEAR(accuracy["estimate"], 0.25, 1e-12);
  EXPECT_LT(accuracy["low"], 0.25);
  EXPECT_GT(accuracy["high"], 0.25);
  // pass@4: (1 - 0.75) - (1 - 0.75)
  EXPECT_NEAR(json["effects"][1]["budgets"][0]["mean"]["estimate"], 0.0, 1e-12);
  const auto text = run_ropd("compare --draws 500 --interaction " + a + " " + b + " " + c + " " + d);
  EXPECT_THAT(text.out, HasSubstr("(" + a + " - " + b + ") - (" + c + " - " + d + ")"));
  EXPECT_THAT(text.out, HasSubstr("+25.00 ["));
}

TEST_F(Compare, SettingsThatDifferAreRefusedUnlessAllowed) {
  const std::string hot = evaluation("hot", {1, 0, 1, 0}), cold = evaluation("cold", {1, 1, 1, 0}, 0.2);
  const auto refused = run_ropd("compare --draws 500 " + hot + " " + cold);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("temperature is 1.0 in"));
  const auto allowed = run_ropd("compare --allow-different-settings --draws 500 " + hot + " " + cold);
  EXPECT_EQ(allowed.exit_code, 0);
  EXPECT_THAT(allowed.err, HasSubstr("settings differ: temperature is 1.0"));
  EXPECT_THAT(allowed.out, HasSubstr("+25.00"));
}

TEST_F(Compare, AllBudgetsRunsAndFormats) {
  const std::string current = evaluation("c1", {0.5, 0.5, 0.25, 0.25}) + "," +
                              evaluation("c2", {0.5, 0.25, 0.25, 0.25}),
                    ropd = evaluation("r1", {0.75, 0.75, 0.5, 0.5}) + "," +
                           evaluation("r2", {1, 0.5, 0.5, 0.25});
  const std::string command = "compare --draws 500 current=" + current + " R-OPD=" + ropd;
  const auto text = run_ropd(command);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("64           128"));
  EXPECT_THAT(text.out, HasSubstr("2 runs, paired in the order given"));
  EXPECT_THAT(text.out, HasSubstr("as little as 87 %"));
  EXPECT_THAT(run_ropd(command + " --format latex").out, HasSubstr("\\toprule"));
  EXPECT_THAT(run_ropd(command + " --format markdown").out, HasSubstr("|---|"));
  const auto csv = run_ropd(command + " --format csv --budgets 128");
  EXPECT_THAT(csv.out, HasSubstr("\"method\",\"runs\",\"128\",\"128 SD\"\n\"current\",2,34.375,"));
  EXPECT_THAT(csv.out, Not(HasSubstr("\"64\"")));
  EXPECT_THAT(run_ropd(command + " --budgets 99").err, HasSubstr("not scored at 99 tokens"));
  EXPECT_EQ(run_ropd(command + " --measures nonsense").exit_code, 1);
}

TEST_F(Compare, OutHoldsEveryTableAndFigure) {
  const std::string out = (directory_ / "out").string();
  const auto outcome =
      run_ropd("compare --draws 500 --measures all --out " + out + " " +
               evaluation("a", {0.5, 0.5, 0.25, 0.25}) + " " + evaluation("b", {1, 0.5, 0.5, 0.25}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* name :
       {"results-accuracy.tex", "differences-length.md", "benchmarks-majority.csv", "measures.txt",
        "difference-accuracy.svg", "difference-pass-n.csv", "difference-accuracy.gp"})
    EXPECT_TRUE(std::filesystem::exists(Path(out) / name)) << name;
}

TEST_F(Compare, OutIsNotWrittenOverUnasked) {
  const Path out = directory_ / "out";
  const std::string command = "compare --draws 500 --out " + out.string() + " " +
                              evaluation("a", {0.5, 0.5, 0.25, 0.25}) + " " +
                              evaluation("b", {1, 0.5, 0.5, 0.25});
  std::filesystem::create_directory(out);
  ASSERT_EQ(run_ropd(command).exit_code, 0) << "an empty folder is free";
  write_file_atomically(out / "results-accuracy.txt", "mine\n");
  const auto refused = run_ropd(command);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("out: holds files already; --overwrite"));
  EXPECT_EQ(read_file(out / "results-accuracy.txt"), "mine\n");
  EXPECT_EQ(run_ropd(command + " --overwrite").exit_code, 0);
  EXPECT_NE(read_file(out / "results-accuracy.txt"), "mine\n");
}

TEST_F(Compare, ANegativeSeedIsNoLargeOne) {
  const auto outcome =
      run_ropd("compare --seed -5 " + evaluation("a", {1, 0, 1, 0}) + " " + evaluation("b", {1, 1, 1, 0}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("is -5, expected a whole number from 0 to 9007199254740991"));
}

}  // namespace
}  // namespace ropd
