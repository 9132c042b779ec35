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
  const std::string commands = reproduce_commands(comparison, "ropd report x");
  const std::string path = (directory / "my run").string();
  EXPECT_EQ(commands, "ropd train '" + path + "/config.yaml' 'output=" + path + "-again'\nropd report x\n");
  EXPECT_THAT(setting_section(comparison), HasSubstr("current until trigger, then initial"));
  EXPECT_THAT(config_section(comparison), HasSubstr("max_response_tokens: 256"));
  EXPECT_THAT(reproduce_section(comparison, "ropd report x", "report_files"), HasSubstr("report_files"));
}

TEST(SettingsSection, HostileSettingsAreEscaped) {
  const test::TemporaryDirectory directory;
  auto fake = test::fake_laboratory()[5];
  fake.hostile = "<script>alert(1)</script>";
  test::write_fake_run(directory / "run", fake);
  const std::vector<RunData> runs = {read_run("<b>x</b>=" + (directory / "run").string())};
  const Comparison comparison = compare_methods(runs);
  for (const std::string& html : {setting_section(comparison), config_section(comparison),
                                  reproduce_section(comparison, "ropd <i>", "<u>")}) {
    EXPECT_THAT(html, Not(HasSubstr("<script")));
    EXPECT_THAT(html, Not(HasSubstr("<b>")));
    EXPECT_THAT(html, Not(HasSubstr("<i>")));
  }
}

}  // namespace
}  // namespace ropd::report
