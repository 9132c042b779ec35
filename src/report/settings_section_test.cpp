#include "report/settings_section.h"

#include <gmock/gmock.h>

#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ShellWord, QuotesWhatAShellWouldInterpret) {
  EXPECT_EQ(shell_word("runs/a-1=b"), "runs/a-1=b");
  EXPECT_EQ(shell_word("my run"), "'my run'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(SettingsSection, CommandsTrainIntoFoldersOfTheirOwn) {
  const test::TemporaryDirectory directory;
  test::write_fake_run(directory / "my run", test::fake_laboratory()[5]);
  const std::vector<RunData> runs = {read_run((directory / "my run").string())};
  const Comparison comparison = compare_methods(runs);
  const std::string commands = reproduce_commands(comparison, {"out/page.html", "a title"});
  const std::string path = (directory / "my run").string();
  EXPECT_EQ(commands, "ropd train '" + path + "/config.yaml' 'output=" + path +
                          "-again'\nropd report 'my run=" + path +
                          "-again' --title 'a title' --out out/page-again.html\n");
  EXPECT_THAT(setting_section(comparison), HasSubstr("current until trigger, then initial"));
  EXPECT_THAT(config_section(comparison), HasSubstr("max_response_tokens: 256"));
  EXPECT_THAT(reproduce_section(comparison, {"page.html", "t"}, "report_files"), HasSubstr("report_files"));
}

TEST(SettingsSection, EvaluationsAreRepeatedAsTheyWereAskedFor) {
  const test::TemporaryDirectory directory;
  const Json generation = {{"model", "models/theta0"},
                           {"suite_file", "my suite.yaml"},
                           {"data", "benchmarks"},
                           {"max_tokens", 512},
                           {"temperature", 0.5},
                           {"top_p", 1},
                           {"seed", 3},
                           {"precision", "f32"}};
  test::write_fake_evaluation(directory / "theta0", test::fake_laboratory()[0]);
  test::write_text(directory / "theta0/generation.json", generation.dump());
  test::write_fake_run(directory / "run", test::fake_laboratory()[5]);
  test::write_text(directory / "run/eval/final/generation.json", generation.dump());
  const std::vector<RunData> runs = {read_run((directory / "theta0").string()),
                                     read_run((directory / "run").string())};
  const std::string commands = reproduce_commands(compare_methods(runs), {"page.html", "t"});
  const std::string
      at = directory.path().string() + "/",
      settings =
          " --budgets 64,128,256,384,512 --suite 'my suite.yaml' --data benchmarks --max-tokens "
          "512 --temperature 0.5 --top-p 1 --seed 3 --precision f32 --out ";
  EXPECT_THAT(commands, HasSubstr("ropd eval --model models/theta0" + settings + at + "theta0-again\n"));
  EXPECT_THAT(commands,
              HasSubstr("ropd eval --model " + at + "run-again" + settings + at + "run-again/eval/final\n"));
}

TEST(SettingsSection, HostileSettingsAreEscaped) {
  const test::TemporaryDirectory directory;
  auto fake = test::fake_laboratory()[5];
  fake.hostile = "<script>alert(1)</script>";
  test::write_fake_run(directory / "run", fake);
  const std::vector<RunData> runs = {read_run("<b>x</b>=" + (directory / "run").string())};
  const Comparison comparison = compare_methods(runs);
  for (const std::string& html : {setting_section(comparison), config_section(comparison),
                                  reproduce_section(comparison, {"<i>.html", "<i>"}, "<u>")}) {
    EXPECT_THAT(html, Not(HasSubstr("<script")));
    EXPECT_THAT(html, Not(HasSubstr("<b>")));
    EXPECT_THAT(html, Not(HasSubstr("<i>")));
  }
}

}  // namespace
}  // namespace ropd::report
