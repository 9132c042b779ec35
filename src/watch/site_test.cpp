#include "watch/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/sample_file.h"
#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::watch {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ParseTarget, ReadsPathAndQuery) {
  const auto target = parse_target("/api/charts?run=a%2Fb&run=c+d&x");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/api/charts");
  EXPECT_EQ(target->values("run"), (std::vector<std::string>{"a/b", "c d"}));
  EXPECT_EQ(target->value("x"), "");
  EXPECT_EQ(parse_target("/")->path, "/");
}

TEST(ParseTarget, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "x", "*", "http://localhost/", "/?a=%", "/?a=%4", "/?a=%zz", "/?a=%+1"})
    EXPECT_FALSE(parse_target(text)) << text;
  std::string many = "/?";
  for (int i = 0; i < 40; ++i) many += "a=1&";
  EXPECT_FALSE(parse_target(many));
}

class SiteTest : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  void write_run(const std::string& id, const std::string& hostile = "") {
    test::FakeRun run = test::fake_laboratory().back();
    run.name = id;
    run.hostile = hostile;
    test::write_fake_run(directory_ / id, run);
  }
  static Json ask(Site& site, const std::string& target, int status = 200) {
    const Answer answer = site.answer(*parse_target(target));
    EXPECT_EQ(answer.status, status) << *answer.body;
    return parse_json(*answer.body, target);
  }
};

TEST_F(SiteTest, TellsOnlyWhatChanged) {
  write_run("a");
  write_run("b");
  Site site(directory_.path());
  const uint64_t first = site.refresh(1000);
  const Json all = parse_json(site.changes_since(0), "changes");
  EXPECT_EQ(all["runs"].size(), 2u);
  EXPECT_EQ(all["ids"], Json::array({"a", "b"}));
  EXPECT_EQ(parse_json(site.changes_since(first), "changes")["runs"], Json::array());
  io::ProgressFile(directory_ / "b/progress.json").write({.name = "b"});
  site.refresh(1001);
  const Json changed = parse_json(site.changes_since(first), "changes");
  ASSERT_EQ(changed["runs"].size(), 1u);
  EXPECT_EQ(changed["runs"][0]["id"], "b");
  EXPECT_FALSE(changed.contains("ids"));
}

TEST_F(SiteTest, DrawsOneRunOrSeveralWithTheReportsFigures) {
  write_run("a");
  write_run("b");
  Site site(directory_.path());
  site.refresh(1000);
  const Json one = ask(site, "/api/charts?run=a"), two = ask(site, "/api/charts?run=a&run=b");
  ASSERT_FALSE(one["groups"].empty());
  std::string svg;
  for (const Json& group : two["groups"])
    for (const Json& figure : group["figures"]) svg += figure["svg"].get<std::string>();
  EXPECT_THAT(svg, HasSubstr("<svg"));
  EXPECT_THAT(svg, HasSubstr("role=\"img\""));
  EXPECT_THAT(svg, HasSubstr(">b</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("style=")));  // the page's policy forbids it
  EXPECT_EQ(two["problems"], Json::array());
}

TEST_F(SiteTest, KeepsAnAnswerUntilItsFilesChange) {
  write_run("a");
  Site site(directory_.path());
  site.refresh(1000);
  const auto target = *parse_target("/api/charts?run=a");
  const auto first = site.answer(target).body;
  EXPECT_EQ(site.answer(target).body, first);  // the same string, not an equal one
  test::FakeRun longer = test::fake_laboratory().back();
  longer.iterations += 2;
  test::write_fake_metrics(directory_ / "a", longer);
  site.refresh(1001);
  EXPECT_NE(site.answer(target).body, first);
}

TEST_F(SiteTest, AnswersAboutRunsOfItsListOnly) {
  write_run("a");
  test::write_text(
      directory_.path().parent_path() / (directory_.path().filename().string() + "-secret") / "config.yaml",
      "x: 1");
  Site site(directory_ / "a");
  site.refresh(1000);
  ask(site, "/api/settings?run=.");
  for (const char* id : {"..", "../a", "%2e%2e%2fa", "/etc", "a", ""})
    ask(site, std::string("/api/settings?run=") + id, 404);
  ask(site, "/api/charts", 400);
  ask(site, "/api/charts?run=.&run=.&run=.&run=.&run=.&run=.&run=.&run=.&run=.", 400);
  ask(site, "/api/responses?run=.&min=x", 400);
  ask(site, "/api/nothing", 404);
  ask(site, "/../../etc/passwd", 404);
  std::filesystem::remove_all(directory_.path().parent_path() /
                              (directory_.path().filename().string() + "-secret"));
}

TEST_F(SiteTest, ABrokenRunIsToldAndTheOthersShown) {
  write_run("a");
  test::write_text(directory_ / "b/metrics.jsonl", "no json\n");
  Site site(directory_.path());
  site.refresh(1000);
  const Json charts = ask(site, "/api/charts?run=a&run=b");
  EXPECT_FALSE(charts["groups"].empty());
  ASSERT_EQ(charts["problems"].size(), 1u);
  EXPECT_THAT(charts["problems"][0].get<std::string>(), HasSubstr("metrics.jsonl:1"));
  ask(site, "/api/settings?run=b", 500);
}

TEST_F(SiteTest, HostileTextsLeaveAsText) {
  const std::string hostile = "<script>alert(1)</script>\x1b[2J\u202E";
  write_run("a", hostile);
  io::write_samples(directory_ / "a/samples/iter-0001.jsonl",
                    {{.iteration = 1,
                      .query_id = hostile,
                      .question = hostile,
                      .answer = hostile,
                      .tokens = {{{hostile, 1, -1.0, -1.0}, {{hostile, 1, -1.0, -1.0}}}}}});
  Site site(directory_.path());
  site.refresh(1000);
  for (const char* target :
       {"/api/runs", "/api/charts?run=a", "/api/responses?run=a", "/api/settings?run=a"}) {
    const std::string body = ask(site, target).dump();
    EXPECT_THAT(body, Not(HasSubstr("\\u001b"))) << target;
    EXPECT_THAT(body, Not(HasSubstr("\u202E"))) << target;
  }
  const Json charts = ask(site, "/api/charts?run=a");
  for (const Json& group : charts["groups"])
    for (const Json& figure : group["figures"])
      EXPECT_THAT(figure["svg"].get<std::string>(), Not(HasSubstr("<script"))) << figure["id"];
}

}  // namespace
}  // namespace ropd::watch
