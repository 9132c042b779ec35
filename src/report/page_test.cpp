// Under sanitizers gcc 12 takes the insides of std::regex for uninitialized.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "report/page.h"

#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Page : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  std::vector<std::string> arguments_;

  void add(const test::FakeRun& fake) {
    const Path path = directory_ / ("run" + std::to_string(arguments_.size()));
    test::write_fake_run(path, fake);
    arguments_.push_back(fake.name + "=" + path.string());
  }
  // Without the files beside it: their durable writes would make up most of the test's time.
  std::string render() {
    std::vector<RunData> runs;
    for (const std::string& argument : arguments_) runs.push_back(read_run(argument));
    const Comparison comparison = compare_methods(runs);
    PageContent content = make_content(comparison, "A <title> & more");
    content.page = "out/report.html";
    content.files = "report_files";
    return render_page(content);
  }
};

TEST_F(Page, TellsTheWholeStory) {
  for (const auto& fake : test::fake_laboratory()) add(fake);
  const std::string html = render();
  for (const char* id : {"results", "setting", "accuracy", "compute", "training", "the-trigger",
                         "fixed-prefixes-of-the-initial-student", "samples", "config", "reproduce"}) {
    EXPECT_THAT(html, HasSubstr("<h2 id=\"" + std::string(id) + "\">"));
    EXPECT_THAT(html, HasSubstr("<a href=\"#" + std::string(id) + "\">"));  // in the contents
  }
  EXPECT_LT(html.find("points more than current"), html.find("<nav"));    // findings come first
  EXPECT_THAT(html, HasSubstr("<span class=\"best\">72.6</span>"));       // fixed, the best trained method
  EXPECT_THAT(html, Not(HasSubstr("<span class=\"best\">86.1</span>")));  // the teacher is a reference
  EXPECT_THAT(html, HasSubstr("current until trigger, then initial"));
  EXPECT_THAT(html, HasSubstr("curriculum.stages[0].iterations"));  // in the differences
  EXPECT_THAT(html, HasSubstr("=2e=4;a=5;c=3;a=4;d=2;d=6;#6~"));
  EXPECT_THAT(html, HasSubstr("ropd report &#39;initial student="));  // quoted for a shell
}

TEST_F(Page, FetchesNothingAndRunsNothing) {
  for (const auto& fake : test::fake_laboratory()) add(fake);
  const std::string html = render();
  for (const char* forbidden : {"<script", "javascript:", "src=", "@import", "url(", " onload", " onclick"})
    EXPECT_THAT(html, Not(HasSubstr(forbidden)));
  // The only addresses: the SVG name space, places in the page itself, and an empty icon.
  const std::regex address("(href|xmlns)=\"([^\"]*)\"");
  for (std::sregex_iterator match(html.begin(), html.end(), address), end; match != end; ++match)
    EXPECT_TRUE((*match)[2] == "http://www.w3.org/2000/svg" || (*match)[2] == "data:," ||
                (*match)[2].str().starts_with("#"))
        << (*match)[2];
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST_F(Page, HostileTextsAreEscapedEverywhere) {
  auto lab = test::fake_laboratory();
  for (auto& fake : {lab[0], lab[5]}) {
    test::FakeRun hostile = fake;
    hostile.hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
    const Path path = directory_ / ("run" + std::to_string(arguments_.size()));
    test::write_fake_run(path, hostile);
    arguments_.push_back("<script>alert(2)</script>" + fake.name + "=" + path.string());
  }
  const std::string html = render();
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, HasSubstr("A &lt;title&gt; &amp; more"));
  // alarm, config, environment, benchmark name, response, query id, method name
  size_t count = 0;
  for (size_t at = html.find("&lt;script&gt;"); at != std::string::npos;
       at = html.find("&lt;script&gt;", at + 1))
    ++count;
  EXPECT_GE(count, 10u);
}

TEST_F(Page, TagsAreBalanced) {
  for (const auto& fake : test::fake_laboratory()) add(fake);
  const std::string html = render();
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  const std::set<std::string> empty = {"meta", "link"};
  for (std::sregex_iterator match(html.begin(), html.end(), tag), end; match != end; ++match) {
    const std::string name = (*match)[2];
    if (empty.count(name) || (*match)[3].length()) continue;
    if (!(*match)[1].length()) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name) << "at " << match->position();
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST_F(Page, IdsAreUnique) {
  for (const auto& fake : test::fake_laboratory()) add(fake);
  const std::string html = render();
  std::set<std::string> ids;
  const std::regex id(" id=\"([^\"]*)\"");
  for (std::sregex_iterator match(html.begin(), html.end(), id), end; match != end; ++match)
    EXPECT_TRUE(ids.insert((*match)[1]).second) << (*match)[1];
}

TEST_F(Page, ADiagnosisIsShownInFull) {
  test::write_fake_diagnosis(directory_ / "diagnosis");
  arguments_.push_back((directory_ / "diagnosis").string());
  const std::string html = render();
  for (const char* text : {"<h2 id=\"diagnosis-diagnosis\">", "fit (on the first one", "Gradient probes",
                           "less likely", "top tenth", "KL on prefixes of theta0"})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST_F(Page, SettingsThatDifferAreSaidLoudly) {
  for (const size_t i : {2u, 4u}) add(test::fake_laboratory()[i]);
  const Path file = directory_ / "run1/eval/final/summary.json";
  Json summary = parse_json(read_file(file), "summary");
  summary["about"]["temperature"] = 0.2;
  test::write_text(file, summary.dump());
  EXPECT_THAT(render(),
              HasSubstr("<p class=\"warning\"><strong>Settings differ:</strong> temperature is 1.0"));
}

TEST_F(Page, OneRunWithoutEvaluationIsEnough) {
  add(test::fake_laboratory()[2]);
  std::filesystem::remove_all(directory_ / "run0/eval");
  const std::string html = render();
  EXPECT_THAT(html, HasSubstr("<h2 id=\"training\">"));
  EXPECT_THAT(html, Not(HasSubstr("<h2 id=\"results\">")));
}

TEST_F(Page, TwoReportsInOneFolderShareNoFile) {
  add(test::fake_laboratory()[2]);
  const size_t count = write_report(arguments_, directory_ / "one.html", "t");
  EXPECT_THAT(read_file(directory_ / "one.html"), HasSubstr("ropd report current="));
  size_t num_charts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "one_files"))
    num_charts += entry.path().extension() == ".svg";
  EXPECT_EQ(num_charts, count);
  EXPECT_GE(count, 12u);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "one_files/results.tex"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "figures"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "two_files"));
}

}  // namespace
}  // namespace ropd::report
